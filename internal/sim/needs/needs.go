// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package needs records which permissions the operator needs in a run, by its requests and their
// effects, with the lines of code that make the requests.
package needs

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/writes"
)

// mostTargets is how many objects are kept of each need, and mostStacks how many requests are asked
// for the line of code that made them. An operator makes most requests again and again.
const (
	mostTargets = 100
	mostStacks  = 8
)

// A Log is what the operator has needed in one run.
type Log struct {
	mu     sync.Mutex // guards what follows: requests are sent by many goroutines
	actors map[string]bool
	needs  map[resource]map[string]*need // then by verb
	owners map[owner]bool
}

// resource is what a request is about: a resource of a group, or a path.
type resource struct{ group, resource, path string }

// New returns an empty log.
func New() *Log {
	return &Log{actors: map[string]bool{}, needs: map[resource]map[string]*need{}, owners: map[owner]bool{}}
}

type need struct {
	targets map[permission.Target]bool
	stacks  [][]uintptr
}

// owner is one that an owner reference names which blocks its deletion.
type owner struct {
	gvk             schema.GroupVersionKind
	namespace, name string
	by              resource // of the object with the reference
	verb            string
}

// public are the beginnings of the paths that every user may get.
var public = []string{"/api", "/openapi", "/version", "/healthz", "/livez", "/readyz"}

// Sent records a request that its caller, a process of the operator, sends.
func (l *Log) Sent(r *apiserver.Request) {
	a := r.Attributes()
	if !a.IsResourceRequest() {
		for _, prefix := range public {
			if strings.HasPrefix(a.GetPath(), prefix) {
				return
			}
		}
		l.add(r.Actor, resource{path: a.GetPath()}, a.GetVerb(), permission.Target{}, true)
		return
	}
	if strings.HasPrefix(a.GetResource(), "selfsubject") {
		return // every user may ask about itself
	}
	of := resource{group: a.GetAPIGroup(), resource: a.GetResource()}
	if a.GetSubresource() != "" {
		of.resource += "/" + a.GetSubresource()
	}
	l.add(r.Actor, of, a.GetVerb(), permission.Target{Namespace: a.GetNamespace(), Name: a.GetName()}, true)
}

// add records a need. If its caller has the stack of the request, that is recorded, too.
func (l *Log) add(actor string, of resource, verb string, target permission.Target, stack bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.actors[actor] = true
	byVerb := l.needs[of]
	if byVerb == nil {
		byVerb = map[string]*need{}
		l.needs[of] = byVerb
	}
	n := byVerb[verb]
	if n == nil {
		n = &need{targets: map[permission.Target]bool{}}
		byVerb[verb] = n
	}
	if len(n.targets) < mostTargets {
		n.targets[target] = true
	} else {
		n.targets[permission.Target{Namespace: target.Namespace}] = true
	}
	if stack && len(n.stacks) < mostStacks {
		n.stacks = append(n.stacks, writes.Stack(2))
	}
}

// Changed records what a change of the cluster by the operator needs besides the permission for the
// request:
//
//   - Who creates an object with a patch needs create, too.
//   - Where the admission plugin OwnerReferencesPermissionEnforcement is on, who sets an owner
//     reference that blocks the deletion of the owner needs to update the finalizers of the owner,
//     and, for an object that exists, to delete that object.
func (l *Log) Changed(c apiserver.Change) {
	l.mu.Lock()
	ours := l.actors[c.Actor]
	l.mu.Unlock()
	if !ours || c.New == nil {
		return
	}
	of := resource{group: c.Resource.Group, resource: c.Resource.Resource}
	if c.Type == "ADDED" && c.Verb != "create" {
		l.add(c.Actor, of, "create", permission.Target{Namespace: c.Namespace}, false)
		l.copyStacks(of, c.Verb, "create")
	}
	before := blocking(c.Old)
	changed := false
	for o := range blocking(c.New) {
		if before[o] {
			continue
		}
		changed = true
		o.namespace, o.by, o.verb = c.Namespace, of, c.Verb
		l.mu.Lock()
		l.owners[o] = true
		l.mu.Unlock()
	}
	if changed && c.Type != "ADDED" {
		l.add(c.Actor, of, "delete", permission.Target{Namespace: c.Namespace, Name: c.Name}, false)
		l.copyStacks(of, c.Verb, "delete")
	}
}

// copyStacks gives a need that follows from a request the lines of the request.
func (l *Log) copyStacks(of resource, from, to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	source, n := l.needs[of][from], l.needs[of][to]
	if source == nil || n == nil {
		return
	}
	for _, s := range source.stacks {
		if len(n.stacks) < mostStacks {
			n.stacks = append(n.stacks, s)
		}
	}
}

// blocking returns the owners whose deletion an object blocks.
func blocking(content map[string]any) map[owner]bool {
	metadata, _ := content["metadata"].(map[string]any)
	references, _ := metadata["ownerReferences"].([]any)
	owners := map[owner]bool{}
	for _, item := range references {
		ref, _ := item.(map[string]any)
		if block, _ := ref["blockOwnerDeletion"].(bool); !block {
			continue
		}
		version, _ := ref["apiVersion"].(string)
		kind, _ := ref["kind"].(string)
		name, _ := ref["name"].(string)
		owners[owner{gvk: schema.FromAPIVersionAndKind(version, kind), name: name}] = true
	}
	return owners
}

// Needs returns what was recorded, ordered. It is called after the run, with what knows the
// resources of kinds.
func (l *Log) Needs(resourceFor func(schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced bool, err error)) []permission.Need {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []permission.Need
	for of, byVerb := range l.needs {
		for verb, n := range byVerb {
			found := permission.Need{Group: of.group, Resource: of.resource, Path: of.path, Verb: verb}
			for t := range n.targets {
				found.Targets = append(found.Targets, t)
			}
			found.By = requesters(n.stacks)
			switch {
			case len(found.By) > 0: // its code is known
			case verb == "list" || verb == "watch":
				found.By = []string{permission.ByCache}
			case of.resource == "events":
				found.By = []string{"the event recorder"} // it has a goroutine of its own
			}
			list = append(list, found)
		}
	}
	for o := range l.owners {
		gvr, namespaced, err := resourceFor(o.gvk)
		if err != nil {
			continue // the server does not have the kind, so that no rule can be for it
		}
		found := permission.Need{Group: gvr.Group, Resource: gvr.Resource + "/finalizers", Verb: "update", Targets: []permission.Target{{Name: o.name}}}
		if namespaced {
			found.Targets[0].Namespace = o.namespace
		}
		if n := l.needs[o.by][o.verb]; n != nil {
			found.By = requesters(n.stacks)
		}
		list = append(list, found)
	}
	return permission.Merge(list)
}

// requesters returns the lines of code of stacks, each once.
func requesters(stacks [][]uintptr) []string {
	var list []string
	seen := map[string]bool{}
	for _, s := range stacks {
		if by := writes.Requester(s); by != "" && !seen[by] {
			seen[by] = true
			list = append(list, by)
		}
	}
	return list
}
