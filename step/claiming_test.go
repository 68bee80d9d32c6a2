// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

const claimedAnnotation = "test.example.com/id"

// A claiming step claims an id, and cleans up.
type claiming struct {
	step.Cleaner[*Thing]
	claim func(req *request) error
}

func (c claiming) Claim(_ context.Context, req *request) error { return c.claim(req) }

var _ step.Claimer[*Thing] = claiming{}

func claimID(id string) func(*request) error {
	return func(req *request) error {
		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, claimedAnnotation, id)
		return nil
	}
}

// The claim is written in one patch with the finalizer, before Do, and not again.
func TestAClaimIsWrittenWithTheFinalizer(t *testing.T) {
	w := newWorld(t, newThing())
	id := "one"
	do := does(func(_ context.Context, req *request) {
		server := w.thing()
		if !slices.Contains(server.Finalizers, finalizer) || server.Annotations[claimedAnnotation] != id {
			t.Errorf("Do was reached with finalizers %v and annotations %v", server.Finalizers, server.Annotations)
		}
		same(t, "Object.Annotations", id, req.Object.Annotations[claimedAnnotation])
		same(t, "Object.ResourceVersion", server.ResourceVersion, req.Object.ResourceVersion)
	})
	w.engine(doing("First", passes), claiming{cleaning("Second", do, passes), func(req *request) error { return claimID(id)(req) }})
	w.must()
	w.wrote("patch Thing a", "patch status of Thing a")
	w.must()
	w.wrote()
	id = "two" // what is claimed has changed
	w.must()
	w.wrote("patch Thing a")
}

// What an admission policy has given the finalizer to, and where nothing is to be claimed, costs no
// write.
func TestAClaimThatChangesNothing(t *testing.T) {
	w := newWorld(t, newThing(finalizer))
	w.engine(claiming{cleaning("A", passes, passes), func(*request) error { return nil }})
	w.must()
	w.wrote("patch status of Thing a")
}

// Without a claim the step is not done, the object gets no finalizer, and can be deleted at once.
func TestWithoutAClaim(t *testing.T) {
	refused := errors.New("the owner is another one")
	for name, test := range map[string]struct {
		claim func(*request) error
		want  string // of the condition Ready
	}{
		"an error": {func(*request) error { return refused }, "False TemporaryError"},
		"a wait":   {func(*request) error { _, err := ctrlkit.WaitFor("the owner"); return err }, "False Waiting"},
		"a change of the spec": {func(req *request) error {
			req.Object.Spec.Size++
			return nil
		}, "False TerminalError"},
		"a panic": {func(*request) error { panic("no") }, "False Panic"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newThing())
			var log []string
			w.engine(claiming{cleaning("A", logged(&log, "Do", passes), passes), test.claim})
			_, _ = w.reconcile() //nolint:errcheck // the conditions say how it ended
			if got := w.thing(); len(got.Finalizers) > 0 || len(log) > 0 || !strings.HasPrefix(w.conditionOf("Ready"), test.want) {
				t.Errorf("finalizers %v, calls %v, condition %s, want %s", got.Finalizers, log, w.conditionOf("Ready"), test.want)
			}
		})
	}
}

// A step that makes nothing for an object needs no finalizer.
func TestNothingToClaim(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	claim := func(*request) error { return fmt.Errorf("a policy: %w", step.ErrNothingToClaim) }
	w.engine(claiming{cleaning("A", logged(&log, "Do", passes), passes), claim})
	w.must()
	if got := w.thing(); len(got.Finalizers) > 0 || len(log) != 1 {
		t.Errorf("finalizers %v, calls %v", got.Finalizers, log)
	}
}

// A claim that is written for an object that another client deletes at the same instant is followed
// by the cleanup, as any finalizer is.
func TestAClaimThatIsLost(t *testing.T) {
	w := newWorld(t, newThing())
	var log []string
	e := w.engine(claiming{cleaning("A", passes, logged(&log, "Cleanup", passes)), claimID("one")})
	w.must()
	last := w.thing()
	w.edit(func(obj *Thing) { obj.Finalizers = nil })
	w.remove(newThing())
	e.EventFilter().Delete(event.DeleteEvent{Object: last})
	w.must()
	if len(log) != 1 {
		t.Errorf("the cleanup ran %d times", len(log))
	}
}

// A gatekeeper leaves those objects alone whose annotation names another operator.
type gatekeeper struct{ step.Cleaner[*Thing] }

func (gatekeeper) Gate(obj *Thing) (reason, message string) {
	if other := obj.Annotations["operator"]; other != "" && other != "us" {
		return "AnotherOperator", "reconciled by " + other
	}
	return "", ""
}

func TestAnObjectOfAnotherOperator(t *testing.T) {
	deleted := deletedThing(finalizer)
	for name, obj := range map[string]*Thing{"alive": newThing(), "being deleted": deleted} {
		t.Run(name, func(t *testing.T) {
			obj.Annotations = map[string]string{"operator": "them"}
			w := newWorld(t, obj)
			var log []string
			e := w.engine(gatekeeper{cleaning("A", logged(&log, "Do", passes), logged(&log, "Cleanup", passes))})
			for range 3 {
				w.must()
			}
			w.wrote()
			none(t, "log", log)
			if got := w.takeEvents(); len(got) != 1 || !strings.Contains(got[0], "reconciled by them") {
				t.Errorf("events %q, want one", got)
			}
			last := w.thing()
			if last.Finalizers = nil; obj.DeletionTimestamp == nil {
				w.remove(newThing())
			} else {
				w.edit(func(obj *Thing) { obj.Finalizers = nil })
			}
			last.Finalizers = []string{finalizer}
			e.EventFilter().Delete(event.DeleteEvent{Object: last}) // its last state has our finalizer, and theirs is the cleanup
			w.must()
			none(t, "log", log)
		})
	}
}

// An object that becomes ours is reconciled.
func TestAnObjectBecomesOurs(t *testing.T) {
	obj := newThing()
	obj.Annotations = map[string]string{"operator": "them"}
	w := newWorld(t, obj)
	w.engine(gatekeeper{cleaning("A", passes, passes)})
	w.must()
	w.edit(func(obj *Thing) { obj.Annotations["operator"] = "us" })
	if w.must(); !slices.Contains(w.thing().Finalizers, finalizer) {
		t.Error("it is left alone")
	}
}
