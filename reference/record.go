// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotationPrefix is what the annotations of all references begin with.
const annotationPrefix = "references.ctrlkit.dev/"

// Annotation returns the annotation in which the uses of a reference are recorded: what the object
// refers to, and after a change of that, until [Reference.Settle], what it referred to before. Each
// is "namespace/name/uid", without a namespace if the kind has none; "none" if the only use was
// ended before anything was made. Of a reference with Options.Targets, a "|" comes before what it
// referred to before.
func (r *Reference[T, R]) Annotation() string { return annotationPrefix + r.Name }

// ResolveAnnotation returns the annotation that a person sets, to any value, so that what labels have
// selected is selected again. It is removed when that is done.
func (r *Reference[T, R]) ResolveAnnotation() string { return "resolve." + r.Annotation() }

// A use is that of one object. One that is created again under the same name is another one.
type use struct {
	key client.ObjectKey
	uid types.UID
}

func useOf(obj client.Object) use {
	return use{client.ObjectKeyFromObject(obj), obj.GetUID()}
}

func (u use) String() string {
	return strings.TrimPrefix(u.key.String(), "/") + "/" + string(u.uid)
}

func usesOf[R client.Object](all []R) []use {
	uses := make([]use, len(all))
	for i, obj := range all {
		uses[i] = useOf(obj)
	}
	return uses
}

// without returns the uses that are not among others.
func without(all, others []use) []use {
	return slices.DeleteFunc(slices.Clone(all), func(u use) bool { return slices.Contains(others, u) })
}

// A record has the uses of an object: what it refers to, and what it referred to before, and may still
// use.
type record struct{ current, former []use }

func (r record) all() []use { return slices.Concat(r.current, r.former) }

// parse returns the uses in the value of an annotation. A word that is no use is left out: it is
// written again. Of a single reference the first one is current.
func parse(text string, single bool) record {
	var r record
	to := &r.current
	for _, one := range strings.Fields(text) {
		if one == "|" {
			to = &r.former
			continue
		}
		parts := strings.Split(one, "/")
		if len(parts) == 2 {
			parts = append([]string{""}, parts...)
		}
		if len(parts) == 3 && parts[1] != "" && parts[2] != "" {
			*to = append(*to, use{client.ObjectKey{Namespace: parts[0], Name: parts[1]}, types.UID(parts[2])})
		}
		if single && len(r.current) == 1 {
			to = &r.former
		}
	}
	return r
}

// recorded returns the uses that the annotation of an object has.
func (r *Reference[T, R]) recorded(obj client.Object) record {
	return parse(obj.GetAnnotations()[r.Annotation()], r.Target != nil)
}

// recordOf returns the uses of an object: if another client has removed the annotation, those that this
// process knows.
func (r *Reference[T, R]) recordOf(obj client.Object) record {
	if known := r.recorded(obj); len(known.all()) > 0 {
		return known
	}
	return r.memory.of(obj.GetUID())
}

// record sets the uses of an object.
func (r *Reference[T, R]) record(obj client.Object, to record) {
	r.memory.set(obj.GetUID(), to)
	var texts []string
	for _, u := range to.current {
		texts = append(texts, u.String())
	}
	if r.Target == nil && len(to.former) > 0 {
		texts = append(texts, "|")
	}
	for _, u := range to.former {
		texts = append(texts, u.String())
	}
	annotate(obj, r.Annotation(), strings.Join(texts, " "))
}

// unused is the value of the annotation when the only use was ended before anything was made.
const unused = "none"

// Unused implements [Of].
func (r *Reference[T, R]) Unused(obj T) bool { return obj.GetAnnotations()[r.Annotation()] == unused }

// giveUp ends uses for which nothing was made.
func (r *Reference[T, R]) giveUp(obj client.Object, begun []use) {
	if len(begun) == 0 {
		return
	}
	known := r.recordOf(obj)
	left := record{without(known.current, begun), without(known.former, begun)}
	if r.record(obj, left); len(left.all()) == 0 {
		annotate(obj, r.Annotation(), unused)
	}
}

// annotate sets an annotation, and removes it if the value is empty.
func annotate(obj client.Object, name, value string) {
	if now, ok := obj.GetAnnotations()[name]; now == value && ok == (value != "") {
		return
	}
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	if annotations[name] = value; value == "" {
		delete(annotations, name)
	}
	obj.SetAnnotations(annotations)
}

// A memory has the uses of objects that this process has recorded, so that another client that
// removes the annotation does not end them. It is kept for references that protect what they refer
// to, whose watch says when an object is gone.
type memory struct {
	mu    sync.Mutex // for all below
	kept  bool
	all   map[types.UID]record
	ended map[types.UID]bool // the object is gone
	// dropped are the uses that have ended since the watch was last asked about an object: the
	// annotation that had them may be gone.
	dropped map[types.UID][]use
}

// keep begins to keep uses.
func (m *memory) keep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = true
}

func (m *memory) of(uid types.UID) record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[uid]
}

func (m *memory) set(uid types.UID, uses record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone := without(m.all[uid].all(), uses.all()); len(gone) > 0 {
		m.dropped[uid] = append(m.dropped[uid], gone...)
	}
	switch {
	case !m.kept:
	case len(uses.all()) == 0:
		delete(m.all, uid)
	default:
		if m.all == nil {
			m.all, m.ended, m.dropped = make(map[types.UID]record), make(map[types.UID]bool), make(map[types.UID][]use)
		}
		m.all[uid] = uses
	}
}

// hasDropped reports whether uses of an object have ended that takeDropped returns.
func (m *memory) hasDropped(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.dropped[uid]) > 0
}

func (m *memory) takeDropped(uid types.UID) []use {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer delete(m.dropped, uid)
	return m.dropped[uid]
}

// end notes that an object is gone. Its uses are kept until those that it has used are known.
func (m *memory) end(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.all[uid]; known {
		m.ended[uid] = true
	}
}

// forgetEnded forgets the uses of an object that is gone.
func (m *memory) forgetEnded(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended[uid] {
		delete(m.all, uid)
		delete(m.ended, uid)
	}
}
