// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// A Need is a verb on a resource, or on a path, that an operator has to be allowed.
type Need struct {
	Group    string `json:"group"`
	Resource string `json:"resource,omitempty"` // with its subresource: "websites/status"
	Path     string `json:"path,omitempty"`     // for what is no resource: "/metrics"
	Verb     string `json:"verb"`

	// Targets are the objects of the requests that have shown the need, ordered. It is empty for a
	// need that follows from a declaration.
	Targets []Target `json:"targets,omitempty"`

	// By are those who have the need, ordered: a step, or a line of code that makes the requests.
	By []string `json:"by,omitempty"`
}

// ByCache is the one who has the needs of a cache: it lists and watches the same in every run.
const ByCache = "the cache"

// A Target is the object of a request, or a place with objects.
type Target struct {
	Namespace string `json:"namespace,omitempty"` // empty for all of them, and for cluster-scoped objects
	Name      string `json:"name,omitempty"`      // empty for a list, a watch and a creation
}

// String returns what is needed: "patch websites.web.ctrlkit.dev/status".
func (n Need) String() string { return n.Verb + " " + n.What() }

// What returns the resource, as kubectl names it, or the path.
func (n Need) What() string {
	if n.Resource == "" {
		return n.Path
	}
	resource, sub, _ := strings.Cut(n.Resource, "/")
	if n.Group != "" {
		resource += "." + n.Group
	}
	if sub != "" {
		resource += "/" + sub
	}
	return resource
}

// mostTargets is how many targets of a need are kept. An operator with more requests the same of
// any object, whatever its name.
const mostTargets = 100

// Merge returns all needs of the lists, ordered, each once.
func Merge(lists ...[]Need) []Need {
	type merged struct {
		Need
		targets sets.Set[Target]
		by      sets.Set[string]
	}
	all := map[string]*merged{}
	for _, n := range slices.Concat(lists...) {
		id := strings.Join([]string{n.Group, n.Resource, n.Path, n.Verb}, " ")
		if all[id] == nil {
			all[id] = &merged{n, sets.New[Target](), sets.New[string]()}
		}
		all[id].targets.Insert(n.Targets...)
		all[id].by.Insert(n.By...)
	}
	needs := make([]Need, 0, len(all))
	for _, n := range all {
		n.Targets, n.By = fewTargets(n.targets), slices.Sorted(maps.Keys(n.by))
		needs = append(needs, n.Need)
	}
	slices.SortFunc(needs, compare)
	return needs
}

// fewTargets returns targets, ordered. The names are left out if there are too many.
func fewTargets(set sets.Set[Target]) []Target {
	if len(set) > mostTargets {
		places := sets.New[Target]()
		for t := range set {
			places.Insert(Target{Namespace: t.Namespace})
		}
		set = places
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func compare(a, b Need) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Path, b.Path),
		cmp.Compare(rank(a.Verb), rank(b.Verb)), cmp.Compare(a.Verb, b.Verb))
}

// verbs are in the order in which people write them.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func rank(verb string) int {
	if i := slices.Index(verbs, verb); i >= 0 {
		return i
	}
	return len(verbs)
}

// Reads are the verbs of what is read through a cache, and now and then beside it. Who may list or
// watch a resource can read all of it, so that get allows nothing more.
func Reads() []string { return []string{"get", "list", "watch"} }

// WithReads returns needs with the other verbs of reading where one of list and watch is needed:
// roles have them together. See [Reads].
func WithReads(needs []Need) []Need {
	var more []Need
	for _, n := range needs {
		if n.Verb != "list" && n.Verb != "watch" || n.Resource == "" {
			continue
		}
		for _, verb := range Reads() {
			read := n
			read.Verb = verb
			more = append(more, read)
		}
	}
	return Merge(needs, more)
}
