// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
)

// Failures that alternate back off as one failure does: the write that says the other reason does
// not have the steps run again at once.
func TestAlternatingFailuresBackOff(t *testing.T) {
	internal := apierrors.NewInternalError(errors.New("boom"))
	wait := func(every time.Duration) error {
		return ctrlkit.Poll("the system", every)
	}
	untimed := ctrlkit.Wait("another object")
	tests := []struct {
		name string
		errs []error // by turns
		most int     // reconciles in half a minute
	}{
		{"one failure", []error{errFirst}, 10},
		{"one failure of two texts", []error{errFirst, errSecond}, 10},
		{"404 and 500", []error{apierrors.NewNotFound(things, "a"), internal}, 10},
		{"403 and 500", []error{forbiddenError(), internal}, 8},
		{"an error and a wait with a time", []error{errFirst, wait(time.Second)}, 20},
		{"an error and a long wait", []error{errFirst, wait(time.Minute)}, 2},
		{"an error and a wait without a time", []error{errFirst, untimed}, 20},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			var n atomic.Int32
			c.start(operator{name: "op", steps: steps{doing("Work", func(context.Context, *request) error {
				return test.errs[int(n.Add(1)-1)%len(test.errs)]
			})}})
			pass(30 * time.Second)
			writes := c.requested("PATCH status")
			t.Logf("%d reconciles, %d writes of the status, Ready: %s", n.Load(), writes, c.ready())
			if got := int(n.Load()); got > test.most || writes > got {
				t.Errorf("%d reconciles and %d writes of the status in half a minute, want %d at most", got, writes, test.most)
			}
			c.noHotLoop("op")
		})
	}
}

// What another client changes is tried at once, whatever the backoff: also a part of the status,
// beside our write.
func TestAChangeCutsABackoffShort(t *testing.T) {
	tests := []struct {
		name   string
		change func(c *cluster) error
	}{
		{"the spec", func(c *cluster) error {
			return c.user.Patch(c.t.Context(), c.thing(), mergePatch(`{"spec":{"size":7}}`))
		}},
		{"an annotation", func(c *cluster) error {
			return c.user.Patch(c.t.Context(), c.thing(), mergePatch(`{"metadata":{"annotations":{"a":"b"}}}`))
		}},
		{"the status", func(c *cluster) error {
			return c.user.Status().Patch(c.t.Context(), c.thing(), mergePatch(`{"status":{"size":3}}`))
		}},
		{"a finalizer, and a deletion", func(c *cluster) error {
			err := c.user.Patch(c.t.Context(), c.thing(), mergePatch(`{"metadata":{"finalizers":["example.com/theirs"]}}`))
			return errors.Join(err, c.user.Delete(c.t.Context(), c.thing()))
		}},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			var n atomic.Int32
			c.start(operator{name: "op", steps: steps{doing("Work", func(context.Context, *request) error {
				n.Add(1)
				return forbiddenError()
			})}})
			pass(3 * time.Second) // of five
			if n.Load() != 1 {
				t.Fatalf("%d reconciles before the change", n.Load())
			}
			c.must(test.change(c))
			pass(time.Second)
			if n.Load() == 1 && c.requested("PATCH status") == 1 { // of an object that is being deleted, no step runs
				t.Error("the change is not tried at once")
			}
		})
	}
}

// Where another watch reports the reconciled kind, too, no event is dropped: it may be for another
// object.
func TestEventsForOthersPass(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.create(&Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}})
		ran := map[string]*atomic.Int32{"a": {}, "b": {}}
		sameForAll := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "default", Name: "b"}}}
		})
		errs := []error{forbiddenError(), errFirst}
		c.start(operator{name: "op", steps: steps{doing("Work", func(_ context.Context, req *request) error {
			if n := ran[req.Object.Name].Add(1); req.Object.Name == "a" {
				return errs[min(int(n), 2)-1]
			}
			return nil
		})}, watch: func(b *builder.Builder) *builder.Builder { return b.Watches(&Thing{}, sameForAll) }})
		pass(time.Second)
		if ran["a"].Load() < 2 || ran["b"].Load() < 2 { // by itself, and by the writes of a
			t.Errorf("a was reconciled %d times, and b %d times", ran["a"].Load(), ran["b"].Load())
		}
	})
}
