// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var rootKind, childKind = schema.GroupKind{Group: "demo.dev", Kind: "Database"}, schema.GroupKind{Kind: "Pod"}

// Watches of different kinds are not in step: whatever the order in which objects arrive, the same
// ones are reported, once each, never before their owner, and the tree is the same.
func TestWorldDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := drawForest(t)
		inOrder := NewWorld(rootKind)
		for _, obj := range objects {
			inOrder.Apply(Change{Object: obj})
		}
		shuffled := NewWorld(rootKind)
		reported := make(map[types.UID]bool)
		for _, obj := range rapid.Permutation(objects).Draw(t, "order") {
			for _, notice := range shuffled.Apply(Change{Object: obj}) {
				obj := notice.Object
				if notice.Verb != "created" || reported[obj.UID] {
					t.Fatalf("%s is reported as %s, reported before: %v", obj.UID, notice.Verb, reported[obj.UID])
				}
				if obj.Kind != rootKind && !slices.ContainsFunc(obj.Owners, func(owner types.UID) bool { return reported[owner] }) {
					t.Fatalf("%s is reported before its owners %v", obj.UID, obj.Owners)
				}
				reported[obj.UID] = true
			}
		}
		if diff := cmp.Diff(outline(inOrder.Tree()), outline(shuffled.Tree())); diff != "" {
			t.Fatalf("the trees differ:\n%s", diff)
		}
		if got, want := len(outline(shuffled.Tree())), len(reported); got != want {
			t.Fatalf("the tree has %d objects, %d were reported", got, want)
		}
	})
}

// drawForest draws objects, each owned by some that come before it, by one that does not exist, or
// by none.
func drawForest(t *rapid.T) []*Object {
	objects := make([]*Object, rapid.IntRange(1, 12).Draw(t, "objects"))
	for i := range objects {
		obj := &Object{Kind: childKind, Name: fmt.Sprint("o", i), UID: types.UID(fmt.Sprint("u", i))}
		if rapid.IntRange(0, 3).Draw(t, "root") == 0 {
			obj.Kind = rootKind
		}
		for _, owner := range rapid.SliceOfNDistinct(rapid.IntRange(-1, i-1), 0, min(2, i+1), rapid.ID[int]).Draw(t, "owners") {
			obj.Owners = append(obj.Owners, types.UID(fmt.Sprint("u", owner)))
		}
		objects[i] = obj
	}
	return objects
}

// outline writes each object of a tree with those that it stands below.
func outline(nodes []*Node) []string {
	var lines []string
	for _, node := range nodes {
		lines = append(lines, string(node.Object.UID))
		for _, below := range outline(node.Children) {
			lines = append(lines, string(node.Object.UID)+"/"+below)
		}
	}
	return lines
}

// An object without owner references stands below the owner that its annotation names, whichever
// of them arrives first.
func TestWorldHasTrackedObjects(t *testing.T) {
	owner := func() *Object { return &Object{Kind: rootKind, Namespace: "default", Name: "db", UID: "owner"} }
	class := func() *Object {
		return &Object{Kind: schema.GroupKind{Kind: "PriorityClass"}, Name: "db", UID: "class", OwnerName: "Database.demo.dev default/db"}
	}
	for _, ownerFirst := range []bool{false, true} {
		w := NewWorld(rootKind)
		changes := []*Object{class(), class(), owner()}
		if ownerFirst {
			changes = []*Object{owner(), class(), class()}
		}
		var got []string
		for _, obj := range changes {
			got = append(got, verbs(w.Apply(Change{Object: obj}))...)
		}
		if diff := cmp.Diff([]string{"created owner", "created class"}, got); diff != "" {
			t.Errorf("owner first: %t (-want +got):\n%s", ownerFirst, diff)
		}
		if diff := cmp.Diff([]string{"owner", "owner/class"}, outline(w.Tree())); diff != "" {
			t.Errorf("owner first: %t: the tree (-want +got):\n%s", ownerFirst, diff)
		}
		if got := verbs(w.Apply(Change{Object: class(), Deleted: true})); !slices.Equal(got, []string{"deleted class"}) {
			t.Errorf("deleted: %v", got)
		}
	}
	w := NewWorld(rootKind)
	stranger := class()
	stranger.OwnerName = "Database.demo.dev default/other"
	if got := verbs(append(w.Apply(Change{Object: owner()}), w.Apply(Change{Object: stranger})...)); !slices.Equal(got, []string{"created owner"}) {
		t.Errorf("with an object of another owner: %v", got)
	}
}

// An object that was there, and then gets an owner, was not created.
func TestWorldNamesWhatIsAdopted(t *testing.T) {
	for _, initial := range []bool{false, true} {
		w := NewWorld(rootKind)
		w.Apply(Change{Object: &Object{Kind: rootKind, Name: "db", UID: "owner"}})
		w.Apply(Change{Object: &Object{Kind: childKind, Name: "db", UID: "child"}, Initial: initial})
		got := verbs(w.Apply(Change{Object: &Object{Kind: childKind, Name: "db", UID: "child", Owners: []types.UID{"owner"}}}))
		if !slices.Equal(got, []string{"adopted child"}) {
			t.Errorf("it was there at the beginning: %t: %v", initial, got)
		}
	}
}

func verbs(notices []Notice) []string {
	var all []string
	for _, n := range notices {
		all = append(all, fmt.Sprint(n.Verb, " ", n.Object.UID))
	}
	return all
}

// Every object that belongs is in the tree, also when owner references form circles.
func TestWorldTreeHoldsEverythingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "objects")
		world := NewWorld(rootKind)
		for i := range n {
			obj := &Object{Kind: rootKind, Name: fmt.Sprint("o", i), UID: types.UID(fmt.Sprint("u", i))}
			for _, owner := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 2).Draw(t, "owners") {
				obj.Owners = append(obj.Owners, types.UID(fmt.Sprint("u", owner)))
			}
			world.Apply(Change{Object: obj})
		}
		if got := len(outline(world.Tree())); got != n {
			t.Fatalf("%d of %d objects are in the tree: %v", got, n, outline(world.Tree()))
		}
	})
}

func TestWorldForgetsWhatIsDeleted(t *testing.T) {
	world := NewWorld(rootKind)
	root := &Object{Kind: rootKind, Name: "db", UID: "r"}
	child := &Object{Kind: childKind, Name: "db-0", UID: "c", Owners: []types.UID{"r"}}
	for _, obj := range []*Object{root, child} {
		world.Apply(Change{Object: obj})
		world.Apply(Change{Object: obj, Deleted: true})
		if got := world.Apply(Change{Object: obj, Deleted: true}); len(got) != 0 {
			t.Errorf("the second deletion of %s is reported: %v", obj.Name, got)
		}
	}
	if len(world.objects)+len(world.belongs)+len(world.children)+len(world.initial) != 0 {
		t.Errorf("something remains: %+v", world)
	}
}

func TestWorldKeepsFewEvents(t *testing.T) {
	world := NewWorld(rootKind)
	world.Apply(Change{Object: &Object{Kind: rootKind, UID: "r"}})
	for i := range 3 * maxEvents {
		world.Apply(Change{Event: &Event{UID: types.UID(fmt.Sprint(i)), Regarding: "r", Reason: fmt.Sprint(i)}})
	}
	if len(world.events) != maxEvents {
		t.Errorf("got %d events, want %d", len(world.events), maxEvents)
	}
	if got := world.Events(1)[0].Reason; got != fmt.Sprint(3*maxEvents-1) {
		t.Errorf("the newest event is number %s", got)
	}
}
