// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Change is a change that a watch reported: the new state of an object, its removal, or a
// Kubernetes event.
type Change struct {
	Object  *Object
	Deleted bool
	Initial bool   // the object existed before the watch began
	Event   *Event // if set, the other fields are not
}

// Event is a Kubernetes event.
type Event struct {
	UID       types.UID
	Regarding types.UID
	Kind      string // of the object that it regards
	Name      string
	Warning   bool
	Reason    string
	Message   string
	Time      time.Time // of the last occurrence
	Count     int64
}

// Notice is a change that is shown.
type Notice struct {
	Verb   string // "exists", "created", "adopted", "changed", "deleted", or "event"
	Object *Object
	Event  *Event
}

// maxEvents is how many events are kept.
const maxEvents = 256

// World holds the operator's objects and their children. An object belongs to it if it is of one
// of the operator's kinds, or if one of its owners belongs to it: by owner references or, for an
// object without any, by the annotation that a set writes. An object that belongs to it stays
// until it is deleted, even if its owner is deleted first. A World is not safe for concurrent use.
type World struct {
	roots    map[schema.GroupKind]bool
	objects  map[types.UID]*Object // all watched objects, including those that do not belong
	initial  map[types.UID]bool    // objects that existed before, until they are reported
	belongs  map[types.UID]bool
	children map[types.UID][]types.UID // by the owner, which need not be known yet
	named    map[string]types.UID      // all objects, by how annotations name them
	waiting  map[string][]types.UID    // objects whose annotation names an owner that is not known yet
	events   []*Event                  // in the order of arrival
}

// NewWorld returns an empty World of an operator with these kinds.
func NewWorld(roots ...schema.GroupKind) *World {
	w := &World{
		roots:    make(map[schema.GroupKind]bool),
		objects:  make(map[types.UID]*Object),
		initial:  make(map[types.UID]bool),
		belongs:  make(map[types.UID]bool),
		children: make(map[types.UID][]types.UID),
		named:    make(map[string]types.UID),
		waiting:  make(map[string][]types.UID),
	}
	for _, root := range roots {
		w.roots[root] = true
	}
	return w
}

// Apply applies a change and returns what is to be shown. The watches of different kinds are not
// synchronized: a child that arrives before its owner is reported together with the owner.
func (w *World) Apply(change Change) []Notice {
	switch {
	case change.Event != nil:
		return w.applyEvent(change.Event)
	case change.Deleted:
		return w.remove(change.Object)
	default:
		return w.put(change)
	}
}

func (w *World) put(change Change) []Notice {
	obj := change.Object
	before := w.objects[obj.UID]
	w.findOwner(obj)
	w.objects[obj.UID] = obj
	w.relink(before, obj)
	w.introduce(obj)
	if before == nil && change.Initial {
		w.initial[obj.UID] = true
	}
	if !w.belongs[obj.UID] {
		notices := w.admit(obj.UID, nil)
		if len(notices) > 0 && before != nil { // it was there, and has an owner now
			notices[0].Verb = "adopted"
		}
		return notices
	}
	if before != nil && before.State.String() == obj.State.String() {
		return nil
	}
	return []Notice{{Verb: "changed", Object: obj}}
}

// findOwner makes the owner that the annotation of an object names one of its owners, when it is
// known.
func (w *World) findOwner(obj *Object) {
	if obj.OwnerName == "" {
		return
	}
	if owner, known := w.named[obj.OwnerName]; known {
		obj.Owners = []types.UID{owner}
	} else if !slices.Contains(w.waiting[obj.OwnerName], obj.UID) {
		w.waiting[obj.OwnerName] = append(w.waiting[obj.OwnerName], obj.UID)
	}
}

// introduce makes a new object the owner of those whose annotation names it.
func (w *World) introduce(obj *Object) {
	name := obj.ownerName()
	w.named[name] = obj.UID
	for _, uid := range w.waiting[name] {
		if child := w.objects[uid]; child != nil && child.OwnerName == name && len(child.Owners) == 0 {
			child.Owners = []types.UID{obj.UID}
			w.relink(nil, child)
		}
	}
	delete(w.waiting, name)
}

// admit adds an object that belongs now, and then those of its descendants that arrived before it.
func (w *World) admit(uid types.UID, notices []Notice) []Notice {
	obj, known := w.objects[uid]
	if !known || w.belongs[uid] || !w.shouldBelong(obj) {
		return notices
	}
	w.belongs[uid] = true
	verb := "created"
	if w.initial[uid] {
		verb = "exists"
		delete(w.initial, uid)
	}
	notices = append(notices, Notice{Verb: verb, Object: obj})
	for _, child := range slices.Clone(w.children[uid]) {
		notices = w.admit(child, notices)
	}
	return notices
}

func (w *World) shouldBelong(obj *Object) bool {
	return w.roots[obj.Kind] || slices.ContainsFunc(obj.Owners, func(owner types.UID) bool { return w.belongs[owner] })
}

func (w *World) remove(obj *Object) []Notice {
	before, known := w.objects[obj.UID]
	if !known {
		return nil
	}
	w.relink(before, nil)
	if w.named[before.ownerName()] == obj.UID {
		delete(w.named, before.ownerName())
	}
	reported := w.belongs[obj.UID]
	delete(w.objects, obj.UID)
	delete(w.belongs, obj.UID)
	delete(w.initial, obj.UID)
	if !reported {
		return nil
	}
	return []Notice{{Verb: "deleted", Object: before}}
}

// relink updates the lists of children.
func (w *World) relink(before, after *Object) {
	if before != nil {
		for _, owner := range before.Owners {
			remaining := slices.DeleteFunc(w.children[owner], func(uid types.UID) bool { return uid == before.UID })
			if len(remaining) == 0 {
				delete(w.children, owner)
			} else {
				w.children[owner] = remaining
			}
		}
	}
	if after != nil {
		for _, owner := range after.Owners {
			w.children[owner] = append(w.children[owner], after.UID)
		}
	}
}

func (w *World) applyEvent(event *Event) []Notice {
	w.events = slices.DeleteFunc(w.events, func(known *Event) bool { return known.UID == event.UID })
	w.events = append(w.events, event)
	if extra := len(w.events) - maxEvents; extra > 0 {
		w.events = slices.Delete(w.events, 0, extra)
	}
	if !w.belongs[event.Regarding] {
		return nil
	}
	return []Notice{{Verb: "event", Event: event, Object: w.objects[event.Regarding]}}
}

// Events returns the last n events of objects that belong, the newest last.
func (w *World) Events(n int) []*Event {
	var events []*Event
	for _, event := range w.events {
		if w.belongs[event.Regarding] {
			events = append(events, event)
		}
	}
	slices.SortStableFunc(events, func(a, b *Event) int { return a.Time.Compare(b.Time) })
	return events[max(0, len(events)-n):]
}

// Node is an object in the tree with its children.
type Node struct {
	Object   *Object
	Children []*Node
}

// Tree returns the objects that belong, each below its owner, oldest first. Objects whose owner is
// gone are at the top.
func (w *World) Tree() []*Node {
	nodes := make(map[types.UID]*Node, len(w.belongs))
	for uid := range w.belongs {
		nodes[uid] = &Node{Object: w.objects[uid]}
	}
	var top []*Node
	for _, node := range nodes {
		if owner := w.placeUnder(node.Object); owner != "" {
			nodes[owner].Children = append(nodes[owner].Children, node)
		} else {
			top = append(top, node)
		}
	}
	sortNodes(top)
	for _, node := range nodes {
		sortNodes(node.Children)
	}
	return top
}

// placeUnder returns the owner below which obj is shown: the first that belongs and is not itself
// below obj.
func (w *World) placeUnder(obj *Object) types.UID {
	for _, owner := range obj.Owners {
		if w.belongs[owner] && !w.isBelow(owner, obj.UID, len(w.belongs)) {
			return owner
		}
	}
	return ""
}

// isBelow reports whether uid is ancestor or is shown below it. Owner references can form a cycle,
// hence the limit.
func (w *World) isBelow(uid, ancestor types.UID, limit int) bool {
	if uid == ancestor || limit == 0 {
		return true
	}
	for _, owner := range w.objects[uid].Owners {
		if w.belongs[owner] {
			return w.isBelow(owner, ancestor, limit-1)
		}
	}
	return false
}

func sortNodes(nodes []*Node) {
	slices.SortFunc(nodes, func(a, b *Node) int {
		return cmp.Or(
			a.Object.Created.Compare(b.Object.Created),
			cmp.Compare(a.Object.Kind.Kind, b.Object.Kind.Kind),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace),
			cmp.Compare(a.Object.Name, b.Object.Name),
			cmp.Compare(a.Object.UID, b.Object.UID),
		)
	})
}
