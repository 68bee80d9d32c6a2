// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
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
		same(t, "n", before, n)
		pass(time.Second)
		w.must()
		if n == before {
			t.Error("it was never reconciled again")
		}
	})
}

// Writes that another client has triggered are no hot loop, however many.
func TestNoHotLoop(t *testing.T) {
	t.Parallel()
	child := func(ctx context.Context, req *request, value int) (*corev1.ConfigMap, bool) {
		cm := &corev1.ConfigMap{}
		if req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "child"}, cm) != nil {
			return nil, false
		}
		same := cm.Data["size"] == fmt.Sprint(value)
		cm.Data = map[string]string{"size": fmt.Sprint(value)}
		return cm, same
	}
	tests := []struct {
		name string
		do   doFunc
	}{
		{"the status follows the spec", changing(func(obj *Thing) { obj.Status.Size = obj.Spec.Size })},
		{"a label follows the spec", labelling(func(obj *Thing) string { return fmt.Sprint(obj.Spec.Size) })},
		{"a child follows the spec, updated", func(ctx context.Context, req *request) (ctrl.Result, error) {
			cm, same := child(ctx, req, req.Object.Spec.Size)
			if same {
				return ctrlkit.NoRequeue()
			}
			return ctrlkit.RequeueIfError(req.Client.Update(ctx, cm))
		}},
		{"a child follows the spec, patched", func(ctx context.Context, req *request) (ctrl.Result, error) {
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"size":"%d"}}`, req.Object.Spec.Size))
			return ctrlkit.RequeueIfError(req.Client.Patch(ctx, configMap("child", nil), patch))
		}},
	}
	for _, test := range tests {
		runInBubble(t, test.name, func(t *testing.T) {
			w := newWorld(t, newThing(), configMap("child", nil))
			w.engine(doing("A", test.do))
			for i := range 30 {
				w.edit(func(obj *Thing) { obj.Spec.Size = i })
				w.must()
			}
			none(t, "hot loops", recorded[journal.HotLoop](w))
		})
	}
}

func TestAChildIsFoughtOver(t *testing.T) {
	tests := []struct {
		name   string
		write  func(ctx context.Context, c client.Client) error
		undo   func(w *world)
		want   string // the beginning of what is reported
		fields []string
		by     []string
	}{
		{"updated", func(ctx context.Context, c client.Client) error {
			cm := &corev1.ConfigMap{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "child"}, cm); err != nil {
				return err
			}
			cm.Data = map[string]string{"size": "ours"}
			return c.Update(ctx, cm)
		}, func(w *world) {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"size":"theirs"}}`))
			must(w.tb, w.server.Patch(context.Background(), configMap("child", nil), patch))
		}, ".data.size of ConfigMap default/child is written again and again", []string{".data.size"}, []string{"helm"}},
		{"updated, with a status that moves", func(ctx context.Context, c client.Client) error {
			b := newThing()
			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "b"}, b); err != nil {
				return err
			}
			b.Spec.Size = 7
			return c.Update(ctx, b)
		}, func(w *world) {
			b := newThing()
			b.Name = "b"
			must(w.tb, w.server.Get(context.Background(), client.ObjectKeyFromObject(b), b))
			b.Generation, b.Spec.Size = b.Generation+1, 0
			must(w.tb, w.server.Update(context.Background(), b))
			b.Status.Size++
			must(w.tb, w.server.Status().Update(context.Background(), b))
		}, ".spec.size of Thing default/b is written again and again", []string{".spec.size"}, nil},
		{"patched", func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, configMap("child", nil), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"size":"ours"}}`)))
		}, func(w *world) {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"size":"theirs"}}`))
			must(w.tb, w.server.Patch(context.Background(), configMap("child", nil), patch))
		}, ".data.size of ConfigMap default/child is written again and again", []string{".data.size"}, []string{"helm"}},
		{"created", func(ctx context.Context, c client.Client) error {
			return client.IgnoreAlreadyExists(c.Create(ctx, configMap("other", map[string]string{"size": "ours"})))
		}, func(w *world) { w.remove(configMap("other", nil)) }, "ConfigMap default/other is created again and again: another client deletes it", nil, nil},
	}
	for _, test := range tests {
		runInBubble(t, test.name, func(t *testing.T) {
			b := newThing()
			b.Name = "b"
			w := newWorld(t, newThing(), b, configMap("child", nil))
			child := configMap("child", nil)
			must(t, w.server.Get(t.Context(), client.ObjectKeyFromObject(child), child))
			child.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "helm", Operation: "Apply", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}
			options := w.options()
			options.APIReader = managed{w.liveReader(), child.ManagedFields}
			w.engineWith(options, doing("A", tries(func(ctx context.Context, req *request) error { return test.write(ctx, req.Client) })))
			for range 12 {
				before := len(w.writes)
				w.must()
				if len(w.writes) > before && len(recorded[journal.HotLoop](w)) == 0 {
					test.undo(w)
				}
			}
			found := recorded[journal.HotLoop](w)
			if len(found) != 1 {
				t.Fatalf("found %d times, want once: then it is slowed", len(found))
			}
			same(t, "fields", test.fields, found[0].Fields)
			same(t, "managers", test.by, found[0].Managers)
			if got := fmt.Sprint(w.takeEvents()); !strings.Contains(got, "HotLoop: "+test.want) {
				t.Errorf("events: %s", got)
			}
		})
	}
}

// managed is a reader whose metadata has managers, which the fake client does not keep.
type managed struct {
	client.Reader
	fields []metav1.ManagedFieldsEntry
}

func (m managed) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := m.Reader.Get(ctx, key, obj, opts...)
	obj.SetManagedFields(m.fields)
	return err
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
		if w.thing() != nil {
			t.Error("the object is still there")
		}
	})
}
