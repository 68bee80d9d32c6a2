// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

// labelling is a Do that wants a label.
func labelling(value func(obj *Thing) string) doFunc {
	return changing(func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "tier", value(obj)) })
}

func TestAnotherClientUndoesWhatWeWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		w.managers = []metav1.ManagedFieldsEntry{
			{Manager: "things", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:tier":{}}}}`)},
			{Manager: "helm", Operation: "Apply", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:tier":{}}}}`)},
			{Manager: "bystander", Operation: "Apply", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`)},
		}
		runs := 0
		w.engine(doing("A", changing(func(obj *Thing) {
			runs++
			metav1.SetMetaDataLabel(&obj.ObjectMeta, "tier", "ours")
		})))
		undo := func() { w.edit(func(obj *Thing) { obj.Labels["tier"] = "theirs" }) }
		var slowed []time.Duration
		for range 600 {
			before := runs
			result := w.must()
			if found := recorded[journal.HotLoop](w); len(found) > len(slowed) {
				slowed = append(slowed, result.RequeueAfter)
			}
			if runs > before {
				undo()
			}
			if result.RequeueAfter == 0 && len(slowed) > 0 {
				t.Fatal("it was dropped: nothing would requeue it")
			}
			pass(time.Second)
		}
		if len(slowed) < 3 || slowed[0] != time.Second || slowed[1] != 2*time.Second {
			t.Fatalf("it was slowed by %v, want longer each time", slowed)
		}
		if runs > 30 {
			t.Errorf("the steps ran %d times in ten minutes", runs)
		}
		found := recorded[journal.HotLoop](w)[0]
		same(t, "fields", []string{".metadata.labels.tier"}, found.Fields)
		same(t, "managers", []string{"helm"}, found.Managers)
		want := `.metadata.labels.tier of Thing default/a is written again and again: field manager "helm" writes it too, stop one of the two`
		w.is(condition.Ready, "False HotLoop: "+want)
		same(t, "events", []string{"HotLoop: " + want}, first(w.takeEvents(), 1))
		if !strings.Contains(fmt.Sprint(recorded[journal.Requeued](w)), "hot loop") {
			t.Error("the journal does not say why it waits")
		}

		// A change of the spec is not slowed down.
		before := runs
		w.edit(func(obj *Thing) { obj.Spec.Size++ })
		w.must()
		if runs == before {
			t.Error("a change of the spec was slowed down")
		}
	})
}

// first returns the first n, or all if there are fewer.
func first[E any](all []E, n int) []E { return all[:min(n, len(all))] }

// When it is over the object says so without an event.
func TestAHotLoopEnds(t *testing.T) {
	tests := []struct {
		name          string
		skipUnchanged bool
		end           func(w *world)
		most          time.Duration // until it is Ready
	}{
		{"it is not undone any more", false, func(*world) {}, 20 * time.Minute},
		{"it is not undone any more, with SkipUnchanged", true, func(*world) {}, 20 * time.Minute},
		{"the spec is changed", false, func(w *world) { w.edit(func(obj *Thing) { obj.Spec.Size++ }) }, 5 * time.Second},
	}
	for _, test := range tests {
		runInBubble(t, test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			options := w.options()
			options.SkipUnchanged = test.skipUnchanged
			w.engineWith(options, doing("A", labelling(func(*Thing) string { return "ours" })))
			var result ctrl.Result
			for range 20 {
				result = w.must()
				w.edit(func(obj *Thing) { obj.Labels["tier"] = "theirs" })
			}
			if !strings.HasPrefix(w.conditionOf(condition.Ready), "False HotLoop") {
				pass(result.RequeueAfter)
				result = w.must()
			}
			if got := w.conditionOf(condition.Ready); !strings.HasPrefix(got, "False HotLoop: ") {
				t.Fatalf("Ready: got %q", got)
			}
			w.edit(func(obj *Thing) { obj.Labels["tier"] = "ours" })
			test.end(w)
			start := time.Now()
			result = w.must()
			for w.conditionOf(condition.Ready) != "True Ready" {
				if result.RequeueAfter == 0 || time.Since(start) > test.most {
					t.Fatalf("after %v nothing would requeue it (%v), and Ready is %q", time.Since(start), result, w.conditionOf(condition.Ready))
				}
				pass(result.RequeueAfter)
				result = w.must()
			}
			same(t, "requeued after", 0, result.RequeueAfter)
			if time.Since(start) > test.most {
				t.Errorf("it took %v", time.Since(start))
			}
		})
	}
}

// A step that writes another value each time makes the event of the next reconcile itself.
func TestEchoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		n := 0
		w.engine(doing("A", changing(func(obj *Thing) {
			n++
			obj.Status.Counters = map[string]int{"odd[key": n}
		})))
		slow := time.Duration(0)
		for i := 0; slow == 0 && i < 100; i++ {
			slow = w.must().RequeueAfter // at once again: the event of its own write
		}
		if slow != time.Second || n > 62 {
			t.Fatalf("it was slowed by %v after %d reconciles", slow, n)
		}
		want := ".status.counters.odd[key of Thing default/a is written again and again: a step gives it another value each time"
		found := recorded[journal.HotLoop](w)
		same(t, "fields", []string{".status.counters.odd[key"}, found[0].Fields)
		w.said("HotLoop: " + want)
		before := n
		for range 10 {
			if got := w.must(); got.RequeueAfter != time.Second {
				t.Fatalf("while it is slowed: %v", got)
			}
		}
		same(t, "runs while it is slowed", before, n)
		pass(time.Second)
		w.must()
		if n == before {
			t.Error("it was never reconciled again")
		}
	})
}

// A deletion does not wait for a hot loop.
func TestADeletionIsNotSlowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		w.engine(cleaning("A", labelling(func(*Thing) string { return "ours" }), passes))
		for range 12 {
			w.must()
			w.edit(func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "tier", "theirs") })
		}
		if len(recorded[journal.HotLoop](w)) == 0 {
			t.Fatal("there is no hot loop")
		}
		w.remove(newThing())
		w.must()
		isGone(w)
	})
}
