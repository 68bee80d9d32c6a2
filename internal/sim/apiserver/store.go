// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// store holds the objects of a server and the history of their changes, and passes each change on
// to watches, controllers and the observer. The server's lock guards it.
type store struct {
	tables   map[schema.GroupResource]*table
	revision uint64
	expired  uint64 // lists and watches from earlier revisions are refused
	history  []event
	limit    int // of the history; 0 means none
	watches  []*Watch
	onCommit func(event) // queues work for the controllers
	onChange func(Change)
	after    []func() // called once the lock is released
}

// table holds the objects of one resource. All versions in which the resource is served share it.
func (s *store) table(k *kind) *table {
	gr := k.storage
	t, ok := s.tables[gr]
	if !ok {
		t = &table{kind: k, objects: map[key]*version{}}
		s.tables[gr] = t
	}
	return t
}

type key struct{ namespace, name string }

// version is one version of an object. It is immutable, but for the cache of its encodings.
type version struct {
	namespace, name string
	uid             types.UID
	revision        uint64
	content         map[string]any
	encoded         map[string][]byte // JSON by API version; guarded by the server's lock
	lacksDefaults   bool              // the content has defaults that are not stored yet
	repeats         map[repeat]bool   // writes that have changed nothing; guarded by the server's lock
}

func (v *version) unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: v.content}
}

// table is the objects of one resource, in whatever versions it is served.
type table struct {
	kind    *kind
	objects map[key]*version
	order   []*version // sorted; nil after a change
}

// sorted returns the objects of a namespace, or of all if it is empty, in the order of etcd's keys.
func (t *table) sorted(namespace string) []*version {
	if t.order == nil {
		t.order = make([]*version, 0, len(t.objects))
		for _, v := range t.objects {
			t.order = append(t.order, v)
		}
		slices.SortFunc(t.order, compareVersions)
	}
	if namespace == "" {
		return t.order
	}
	from, _ := slices.BinarySearchFunc(t.order, namespace, func(v *version, ns string) int { return cmp.Compare(v.namespace, ns) })
	to := from
	for to < len(t.order) && t.order[to].namespace == namespace {
		to++
	}
	return t.order[from:to]
}

func compareVersions(a, b *version) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// event is a committed change.
type event struct {
	revision uint64
	kind     *kind
	old, new *version // old is nil if it was added, new if it was deleted
	last     *version // of a deletion: the last state, with the resource version of the deletion, as watches send it
}

// sortedTables returns the tables ordered by group and resource.
func (s *store) sortedTables() []*table {
	list := make([]*table, 0, len(s.tables))
	for _, t := range s.tables {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *table) int {
		return cmp.Or(cmp.Compare(a.kind.storage.Group, b.kind.storage.Group), cmp.Compare(a.kind.storage.Resource, b.kind.storage.Resource))
	})
	return list
}

// put commits a new object (old is nil) or a new version of an object.
func (s *store) put(w *writeContext, old *version, content map[string]any) *version {
	s.revision++
	u := unstructured.Unstructured{Object: content}
	setResourceVersion(content, s.revision)
	v := &version{namespace: u.GetNamespace(), name: u.GetName(), uid: u.GetUID(), revision: s.revision, content: content, lacksDefaults: w.lacksDefaults}
	t := s.table(w.kind)
	t.objects[key{v.namespace, v.name}] = v
	t.order = nil
	s.commit(w, event{revision: s.revision, kind: w.kind, old: old, new: v})
	return v
}

// remove commits the removal of an object.
func (s *store) remove(w *writeContext, v *version) *version {
	s.revision++
	last := *v
	last.content = shallow(v.content)
	last.content["metadata"] = shallow(v.content["metadata"].(map[string]any))
	setResourceVersion(last.content, s.revision)
	last.revision, last.encoded = s.revision, nil
	t := s.table(w.kind)
	delete(t.objects, key{v.namespace, v.name})
	t.order = nil
	s.commit(w, event{revision: s.revision, kind: w.kind, old: v, last: &last})
	return &last
}

// commit records a change and notifies watches, controllers and the observer.
func (s *store) commit(w *writeContext, e event) {
	s.remember(e)
	for _, watch := range s.watches {
		watch.offer(e)
	}
	s.onCommit(e)
	if s.onChange == nil {
		return
	}
	c := Change{
		ResourceVersion: e.revision, Type: "MODIFIED", Resource: w.kind.gvr, Actor: w.request.Actor, Verb: w.request.Verb,
		Subresource: w.request.Subresource,
	}
	switch {
	case e.old == nil:
		c.Type = "ADDED"
	case e.new == nil:
		c.Type = "DELETED"
	}
	v := e.new
	if v == nil {
		v = e.old
	} else {
		c.New = v.content
	}
	if e.old != nil {
		c.Old = e.old.content
	}
	c.Namespace, c.Name, c.UID = v.namespace, v.name, v.uid
	s.onChange(c)
}

// remember adds a change to the history. If the history is limited, the older half is forgotten when it
// has twice the limit.
func (s *store) remember(e event) {
	if s.limit > 0 && len(s.history) >= 2*s.limit {
		s.expired = max(s.expired, s.history[s.limit-1].revision)
		s.history = slices.Clone(s.history[s.limit:])
	}
	s.history = append(s.history, e)
}

func setResourceVersion(content map[string]any, revision uint64) {
	metadata(content)["resourceVersion"] = strconv.FormatUint(revision, 10)
}

// metadata returns the metadata of an object, which it creates if there are none.
func metadata(content map[string]any) map[string]any {
	m, ok := content["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		content["metadata"] = m
	}
	return m
}

func shallow(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// encode returns an object as JSON, in the given version of its group.
func (v *version) encode(gvk schema.GroupVersionKind) []byte {
	apiVersion := gvk.GroupVersion().String()
	if data, ok := v.encoded[apiVersion]; ok {
		return data
	}
	content := v.content
	if content["apiVersion"] != apiVersion || content["kind"] != gvk.Kind {
		content = convert(content, gvk)
	}
	data := encodeVersion(content)
	if v.encoded == nil {
		v.encoded = map[string][]byte{}
	}
	v.encoded[apiVersion] = data
	return data
}

// read returns an object as JSON for the answer to a request. Watches and patches have what is stored.
func (v *version) read(k *kind) []byte {
	if readable, hides := builtin.Readable(k.gvk, v.content); hides {
		return encodeVersion(readable)
	}
	return v.encode(k.gvk)
}

// encodeVersion returns an immutable object as JSON.
func encodeVersion(content map[string]any) []byte {
	in := inputsOf(content)
	known, ok := versions.find(in)
	if !ok {
		known = encode(content)
		versions.add(in, known)
	}
	return known.([]byte)
}

// versions holds the JSON of versions of objects.
var versions = newMemo(512)

// encodeItem returns an object as JSON for a list. Items of built-in kinds have no apiVersion and
// kind: the real server encodes them with their Go types, whose type metadata are empty.
func (v *version) encodeItem(k *kind) []byte {
	if k.definition != nil {
		return v.encode(k.gvk)
	}
	item := "item"
	if k.storage == eventsStorage {
		item += k.gvr.Group
	}
	if data, ok := v.encoded[item]; ok {
		return data
	}
	readable, _ := builtin.Readable(k.gvk, v.contentAs(k))
	content := shallow(readable)
	delete(content, "apiVersion")
	delete(content, "kind")
	if v.encoded == nil {
		v.encoded = map[string][]byte{}
	}
	v.encoded[item] = encodeVersion(content)
	return v.encoded[item]
}

// encode returns a value that came from JSON as JSON.
func encode(content any) []byte {
	data, err := json.Marshal(content)
	if err != nil {
		panic(err) // only for a value that no JSON decoder returns
	}
	return data
}

// at returns the objects of a resource as they were at a revision, in order. The changes since then are
// undone: few lists ask for the past, and if so, for that of a moment ago.
func (s *store) at(t *table, revision uint64, namespace string) []*version {
	if revision >= s.revision {
		return t.sorted(namespace)
	}
	objects := maps.Clone(t.objects)
	for _, e := range slices.Backward(s.history) {
		if e.revision <= revision {
			break
		}
		if e.kind.storage != t.kind.storage {
			continue
		}
		if e.old != nil {
			objects[key{e.old.namespace, e.old.name}] = e.old
		} else {
			delete(objects, key{e.new.namespace, e.new.name})
		}
	}
	var list []*version
	for _, v := range objects {
		if namespace == "" || v.namespace == namespace {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, compareVersions)
	return list
}

type dependent struct {
	kind    *kind
	version *version
}

// dependents returns the objects that have an owner reference to a UID, ordered.
func (s *store) dependents(uid types.UID) []dependent {
	var list []dependent
	for _, t := range s.tables {
		for _, v := range t.objects {
			if slices.ContainsFunc(ownersOf(v), func(o any) bool { m, _ := o.(map[string]any); return m["uid"] == string(uid) }) {
				list = append(list, dependent{t.kind, v})
			}
		}
	}
	slices.SortFunc(list, func(a, b dependent) int {
		return cmp.Or(compareKinds(a.kind, b.kind), compareVersions(a.version, b.version))
	})
	return list
}

func (s *store) byUID(uid types.UID) (*kind, *version) {
	for _, t := range s.tables {
		for _, v := range t.objects {
			if v.uid == uid {
				return t.kind, v
			}
		}
	}
	return nil, nil
}

func ownersOf(v *version) []any {
	m, _ := v.content["metadata"].(map[string]any)
	owners, _ := m["ownerReferences"].([]any)
	return owners
}
