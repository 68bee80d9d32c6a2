// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
)

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
