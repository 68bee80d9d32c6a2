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
// ended before anything was made.
func (r *Reference[T, R]) Annotation() string { return annotationPrefix + r.Name }

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

// parse returns the uses in the value of an annotation. What is none is left out: it is written
// again.
func parse(text string) []use {
	var all []use
	for _, one := range strings.Fields(text) {
		parts := strings.Split(one, "/")
		if len(parts) == 2 {
			parts = append([]string{""}, parts...)
		}
		if len(parts) == 3 && parts[1] != "" && parts[2] != "" {
			all = append(all, use{client.ObjectKey{Namespace: parts[0], Name: parts[1]}, types.UID(parts[2])})
		}
	}
	return all
}

// recorded returns the uses that the annotation of an object has.
func (r *Reference[T, R]) recorded(obj client.Object) []use {
	return parse(obj.GetAnnotations()[r.Annotation()])
}

// uses returns the uses of an object: if another client has removed the annotation, those that this
// process knows.
func (r *Reference[T, R]) uses(obj client.Object) []use {
	if all := r.recorded(obj); len(all) > 0 {
		return all
	}
	return r.memory.of(obj.GetUID())
}

// record sets the uses of an object.
func (r *Reference[T, R]) record(obj client.Object, all []use) {
	r.memory.set(obj.GetUID(), all)
	texts := make([]string, len(all))
	for i, u := range all {
		texts[i] = u.String()
	}
	r.annotate(obj, strings.Join(texts, " "))
}

// unused is the value of the annotation when the only use was ended before anything was made.
const unused = "none"

// Unused implements [Of].
func (r *Reference[T, R]) Unused(obj T) bool { return obj.GetAnnotations()[r.Annotation()] == unused }

// giveUp ends a use for which nothing was made.
func (r *Reference[T, R]) giveUp(obj client.Object, u use) {
	r.record(obj, slices.DeleteFunc(r.uses(obj), func(old use) bool { return old == u }))
	if len(r.recorded(obj)) == 0 {
		r.annotate(obj, unused)
	}
}

// annotate sets the annotation, and removes it if the value is empty.
func (r *Reference[T, R]) annotate(obj client.Object, value string) {
	if obj.GetAnnotations()[r.Annotation()] == value {
		return
	}
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	if annotations[r.Annotation()] = value; value == "" {
		delete(annotations, r.Annotation())
	}
	obj.SetAnnotations(annotations)
}

// A memory has the uses of objects that this process has recorded, so that another client that
// removes the annotation does not end them. It is kept for references that protect what they refer
// to, whose watch says when an object is gone.
type memory struct {
	mu    sync.Mutex // for all below
	kept  bool
	all   map[types.UID][]use
	ended map[types.UID]bool // the object is gone
}

// keep begins to keep uses.
func (m *memory) keep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = true
}

func (m *memory) of(uid types.UID) []use {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all[uid])
}

func (m *memory) set(uid types.UID, uses []use) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.kept:
	case len(uses) == 0:
		delete(m.all, uid)
	default:
		if m.all == nil {
			m.all, m.ended = make(map[types.UID][]use), make(map[types.UID]bool)
		}
		m.all[uid] = slices.Clone(uses)
	}
}

// end notes that an object is gone. Its uses are kept until those that it has used are known.
func (m *memory) end(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[uid] != nil {
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
