// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/difference"
	"github.com/ctrlkit/ctrlkit/internal/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/trial"
)

// A state has the objects of a cluster, by what they are called in every run. Those that neither the
// operator nor a user has written have the mark unwritten.
type state map[string]map[string]any

// unwritten marks an object that only others have written. What is so in both runs is not compared.
const unwritten = "(unwritten)"

// A history is what has changed in a cluster.
type history struct {
	trace *trace
	clock *clock
	made  func(types.UID) bool // whether an object is one that the operator creates

	mu       sync.Mutex      // guards what follows
	written  map[string]bool // objects that the operator or a user has written
	states   trial.States
	progress time.Duration             // by clock, of the last change to a state that its object was not in before
	all      int                       // changes, of all clients
	kinds    map[string]int            // the same, by kind
	version  uint64                    // of the last change
	versions map[string]bool           // resource versions of all changes
	users    map[string]map[string]any // objects that users have created and not deleted, as they were then
	children map[string]bool           // objects that the operator has created
	statuses map[string]types.UID      // objects of users that have a status
	orphans  map[types.UID]bool        // what a deletion of its owner has left, and whether the operator has used it
}

func newHistory(t *trace) *history {
	return &history{trace: t, clock: newClock(), made: func(types.UID) bool { return false }, written: map[string]bool{}, kinds: map[string]int{}, users: map[string]map[string]any{}, children: map[string]bool{}, statuses: map[string]types.UID{}, orphans: map[types.UID]bool{}, versions: map[string]bool{}}
}

func thing(resource, namespace, name string) string {
	return resource + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// changed takes a change of the cluster, which is one of its objects that operators work with.
func (h *history) changed(c apiserver.Change) {
	resource := c.Resource.GroupResource()
	what, named := thing(resource.String(), c.Namespace, c.Name), cluster.ObjectName(c.Resource, c.Namespace, c.Name)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version = c.ResourceVersion
	h.versions[strconv.FormatUint(c.ResourceVersion, 10)] = true
	operator := trial.IsOperator(c.Actor)
	if operator || c.Actor == trial.UserActor || c.Actor == otherActor {
		h.written[what] = true
	}
	if !operator {
		h.trace.add(c.Actor, "write", strings.ToLower(c.Type)+" "+what)
	}
	h.all++
	h.kinds[resource.String()]++
	switch c.Type {
	case "ADDED":
		h.children[what] = operator
		if c.Actor == trial.UserActor && mayBeRecreated(c) {
			h.users[named] = c.New
		}
	case "DELETED":
		delete(h.users, named)
	default:
		if written := h.users[named]; written != nil && c.Actor == trial.UserActor {
			h.users[named] = cluster.Rewritten(written, c)
		}
		if (&unstructured.Unstructured{Object: c.New}).GetDeletionTimestamp() != nil {
			delete(h.users, named)
		}
	}
	delete(h.statuses, named)
	if status, _ := c.New["status"].(map[string]any); len(status) > 0 && h.users[named] != nil && c.Type != "DELETED" {
		h.statuses[named] = c.UID
	}
	if _, left := h.orphans[c.UID]; left && operator {
		h.orphans[c.UID] = true
	}
	if _, isNew := h.states.Enter(c); isNew {
		h.progress = h.clock.now()
	}
}

// mayBeRecreated reports whether a user who deletes an object can create it again as it was: what
// is in a Namespace is gone with it, and what holds a finalizer of another client does not go.
func mayBeRecreated(c apiserver.Change) bool {
	return c.Resource.Resource != "namespaces" && len((&unstructured.Unstructured{Object: c.New}).GetFinalizers()) == 0
}

// idle returns for how long, by clock, nothing new has happened.
func (h *history) idle() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.now() - h.progress
}

// count returns how often the cluster has changed.
func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all
}

// countOf returns how often objects of a kind have changed.
func (h *history) countOf(kind string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kinds[kind]
}

// last returns the resource version of the last change.
func (h *history) last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version
}

// ofUsers returns the objects that users have created and that are not being deleted, as plans name them.
func (h *history) ofUsers() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.users))
}

// withStatus returns those of them that have a status.
func (h *history) withStatus() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.statuses))
}

// uidOf returns the UID of one of them; "" if it has no status.
func (h *history) uidOf(what string) types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.statuses[what]
}

// withholdable returns the Secrets and ConfigMaps among those of users.
func (h *history) withholdable() []string {
	return slices.DeleteFunc(h.ofUsers(), func(what string) bool { return !cluster.IsWithholdable(what) })
}

// orphaned notes what a deletion of its owner has left.
func (h *history) orphaned(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orphans[uid] = false
}

// usesOrphan reports whether the operator has changed such an object.
func (h *history) usesOrphan(uid types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.orphans[uid]
}

// created returns an object as its user has created it; nil if there is none of the name.
func (h *history) created(what string) map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.users[what]
}

// isChild reports whether the operator has created an object.
func (h *history) isChild(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.children[what]
}

// wake says that something new happens.
func (h *history) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = h.clock.now()
}

// of returns the state of a cluster: its objects that were written, without what differs by chance.
func (h *history) of(objects []apiserver.Object) state {
	h.mu.Lock()
	defer h.mu.Unlock()
	names, generated := map[string]string{}, map[string]int{}
	sortGenerated(objects)
	s := state{}
	var kept []apiserver.Object
	for _, o := range objects {
		u := &unstructured.Unstructured{Object: o.Content}
		called := thing(o.Resource.GroupResource().String(), o.Namespace, o.Name)
		if prefix := u.GetGenerateName(); prefix != "" && strings.HasPrefix(o.Name, prefix) {
			called = thing(o.Resource.GroupResource().String(), o.Namespace, prefix+"*")
			generated[called]++
			names[o.Name] = fmt.Sprintf("%s*%d", prefix, generated[called])
			called += fmt.Sprint(generated[called])
		}
		names[string(u.GetUID())] = "the UID of " + called
		if cluster.Ignored(o.Resource) {
			continue
		}
		s[called] = nil
		kept = append(kept, o)
	}
	var pairs []string
	for _, from := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) }) {
		if from != "" {
			pairs = append(pairs, from, names[from])
		}
	}
	replacer := strings.NewReplacer(pairs...)
	for _, o := range kept {
		u := &unstructured.Unstructured{Object: o.Content}
		called := strings.TrimPrefix(replacer.Replace(string(u.GetUID())), "the UID of ")
		delete(s, called)
		called = cluster.UID.ReplaceAllStringFunc(called, replacer.Replace) // it may be named after another object
		content := trial.Timeless(o.Content)
		switch {
		case o.Resource.Resource == "services" && o.Resource.Group == "":
			unallocated(content)
		case o.Resource.Group == "apps":
			withoutRevisions(content)
		}
		cluster.OmitZeros(o.Resource.Group, content, h.made(u.GetUID()))
		h.withoutVersions("", content)
		s[called], _ = renamed(untouched(content), replacer).(map[string]any)
		if !h.written[thing(o.Resource.GroupResource().String(), o.Namespace, o.Name)] {
			s[called][unwritten] = true
		}
	}
	return s
}

// withoutVersions replaces what an operator has copied of the resource versions of objects, as into
// an annotation that says from which one a copy was made.
func (h *history) withoutVersions(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			v[key] = h.withoutVersions(key, child)
		}
	case []any:
		for i := range v {
			v[i] = h.withoutVersions(name, v[i])
		}
	case string:
		if h.versions[v] && versionName.MatchString(name) {
			return "(resource version)"
		}
	}
	return value
}

// versionName matches the names of fields, labels and annotations that have the resource version of
// something, and not that of a program.
var versionName = regexp.MustCompile(`(?i)(resource|source|from|observed)[-_]?version$`)

// unallocated removes what the API server has allocated for a Service: which address and port it is
// depends on those that were free.
func unallocated(content map[string]any) {
	spec, _ := content["spec"].(map[string]any)
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if p, ok := port.(map[string]any); ok {
			delete(p, "nodePort")
		}
	}
}

// withoutRevisions removes what the controllers of a workload have counted: one that was created
// again counts anew.
func withoutRevisions(content map[string]any) {
	for _, counter := range [][]string{
		{"metadata", "annotations", "deployment.kubernetes.io/revision"}, {"metadata", "annotations", "deprecated.daemonset.template.generation"},
		{"status", "currentRevision"}, {"status", "updateRevision"},
	} {
		unstructured.RemoveNestedField(content, counter...)
	}
	if u := (&unstructured.Unstructured{Object: content}); len(u.GetAnnotations()) == 0 {
		u.SetAnnotations(nil)
	}
	conditions, _, _ := unstructured.NestedSlice(content, "status", "conditions") //nolint:errcheck // what is no list has none
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok {
			delete(c, "message") // it names a ReplicaSet
		}
	}
	if conditions != nil {
		_ = unstructured.SetNestedSlice(content, conditions, "status", "conditions") //nolint:errcheck // it was one
	}
}

// sortGenerated orders objects so that those with generated names have the same order in each run,
// if their contents differ.
func sortGenerated(objects []apiserver.Object) {
	keys := map[string]string{}
	key := func(o apiserver.Object) string {
		what := thing(o.Resource.Resource, o.Namespace, o.Name)
		if keys[what] != "" {
			return keys[what]
		}
		keys[what] = what
		if prefix := (&unstructured.Unstructured{Object: o.Content}).GetGenerateName(); prefix != "" {
			data, err := json.Marshal(trial.Timeless(o.Content))
			if err != nil {
				panic(err) // it came from JSON
			}
			keys[what] = thing(o.Resource.Resource, o.Namespace, prefix) + strings.ReplaceAll(string(data), o.Name, "")
		}
		return keys[what]
	}
	slices.SortFunc(objects, func(a, b apiserver.Object) int { return cmp.Compare(key(a), key(b)) })
}

// touched is the annotation that another client adds.
const touched = "example.com/touched"

// untouched returns a value without what another client has added, which an operator may keep or not,
// and may pass on to its children and their templates.
func untouched(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			v[name] = untouched(child)
			if name != "annotations" {
				continue
			}
			if annotations, ok := child.(map[string]any); ok && annotations[touched] != nil {
				delete(annotations, touched)
				if len(annotations) == 0 {
					delete(v, name)
				}
			}
		}
	case []any:
		for i := range v {
			v[i] = untouched(v[i])
		}
	}
	return value
}

// renamed returns a value with other texts.
func renamed(value any, names *strings.Replacer) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			out[names.Replace(name)] = renamed(child, names)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = renamed(child, names)
		}
		return out
	case string:
		return names.Replace(v)
	}
	return value
}

// differences returns what is not as in another state, without what is known to differ by chance.
func (s state) differences(want state, chance map[string]bool) []oracle.Difference {
	var found []oracle.Difference
	add := func(d oracle.Difference) {
		if !chance[d.Thing+" "+d.Path] && !chance[d.Thing+" "] {
			found = append(found, d)
		}
	}
	for what, content := range want {
		if content[unwritten] != nil {
			continue
		}
		got, ok := s[what]
		if !ok {
			add(oracle.Difference{Thing: what, Want: "there"})
			continue
		}
		got = maps.Clone(got)
		delete(got, unwritten)
		secret := strings.HasPrefix(what, "secrets ")
		for _, f := range difference.Of(content, got, difference.Options{Keyed: true}) {
			if cluster.SameField(what, f.Path, f.From, f.To) {
				continue
			}
			hidden := secret && (strings.HasPrefix(f.Path, "data") || strings.HasPrefix(f.Path, "stringData"))
			add(oracle.Difference{Thing: what, Path: f.Path, Want: shown(f.From, hidden), Got: shown(f.To, hidden)})
		}
	}
	for what, content := range s {
		if _, ok := want[what]; !ok && content[unwritten] == nil {
			add(oracle.Difference{Thing: what, Got: "there"})
		}
	}
	slices.SortFunc(found, func(a, b oracle.Difference) int {
		return cmp.Or(cmp.Compare(a.Thing, b.Thing), cmp.Compare(a.Path, b.Path))
	})
	return found
}

func shown(value any, hidden bool) string {
	if value == nil {
		return ""
	}
	if hidden {
		return "<secret " + fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, value)))[:8] + ">"
	}
	text, ok := value.(string)
	if !ok {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		text = string(data)
	}
	if text == "" {
		return "(an empty text)"
	}
	if len(text) > 200 {
		return text[:197] + "..."
	}
	return text
}
