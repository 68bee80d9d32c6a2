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
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// changing returns a Do that changes the object.
func changing(change func(obj *Thing)) doFunc {
	return does(func(_ context.Context, req *request) { change(req.Object) })
}

func TestWrites(t *testing.T) {
	label := func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "size", "7") }
	size := func(obj *Thing) { obj.Status.Size = 7 }
	tests := []struct {
		name string
		step step.Step[*Thing]
		want []string
	}{
		{"conditions", doing("A", passes), []string{"patch status of Thing a"}},
		{"status", doing("A", changing(size)), []string{"patch status of Thing a"}},
		{"status after an error", doing("A", func(_ context.Context, req *request) (ctrl.Result, error) {
			size(req.Object)
			return ctrl.Result{}, errFirst
		}), []string{"patch status of Thing a"}},
		{"metadata", doing("A", changing(label)), []string{"patch Thing a", "patch status of Thing a"}},
		{"both", doing("A", changing(func(obj *Thing) { label(obj); size(obj) })), []string{"patch Thing a", "patch status of Thing a"}},
		{"from Post", posting{doing("A", passes), func(_ context.Context, req *request) error {
			label(req.Object)
			size(req.Object)
			return nil
		}}, []string{"patch Thing a", "patch status of Thing a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(test.step)
			_, _ = w.reconcile()
			w.wrote(test.want...)
			before := w.thing()
			_, _ = w.reconcile()
			w.wrote()
			same(t, "the object has changed", before, w.thing())
		})
	}
}

// What a step records in the metadata is saved by the reconcile that has done it, also by the one
// that has written the finalizer: the next would do it again.
func TestMetadataIsSavedBesideTheFinalizer(t *testing.T) {
	w := newWorld(t, newThing())
	made := 0
	w.engine(cleaning("A", changing(func(obj *Thing) {
		if obj.Annotations["id"] == "" {
			made++
			metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "id", fmt.Sprint("bucket-", made))
		}
		obj.Status.Size = 7
	}), passes))
	same(t, "requeued after", 0, w.must().RequeueAfter)
	if obj := w.thing(); obj.Annotations["id"] != "bucket-1" || obj.Status.Size != 7 || !slices.Contains(obj.Finalizers, finalizer) {
		t.Errorf("after the first reconcile: %+v", obj)
	}
	w.wrote("patch Thing a", "patch Thing a", "patch status of Thing a")
	w.must()
	same(t, "made", 1, made)
	w.wrote()
}

func TestAStepMayKeepFinalizersOfItsOwn(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(
		cleaning("A", changing(func(obj *Thing) {
			if !slices.Contains(obj.Finalizers, foreignFinalizer) {
				obj.Finalizers = append(obj.Finalizers, foreignFinalizer)
			}
		}), passes))
	w.must()
	w.must()
	w.must()
	same(t, "finalizers", []string{finalizer, foreignFinalizer}, w.thing().Finalizers)
}

func TestNothingNewerIsOverwritten(t *testing.T) {
	tests := []struct {
		name string
		do   func(obj *Thing)
	}{
		{"the status", func(obj *Thing) { obj.Status.Size++ }},
		{"the metadata", func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "us"); obj.Status.Size++ }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			interfere := true
			w.engine(doing("A", does(func(_ context.Context, req *request) {
				test.do(req.Object)
				if interfere {
					w.edit(func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "them") })
					w.editStatus(func(obj *Thing) { obj.Status.Size = 42 })
				}
			})))
			w.conflicts()
			if got := w.thing(); got.Labels["by"] != "them" || got.Status.Size != 42 || len(got.Status.Conditions) > 0 {
				t.Errorf("it was overwritten: %v", got)
			}
			if got := w.takeWrites(); len(got) != 2 || !strings.HasPrefix(got[1], "patch Thing") {
				t.Errorf("writes: %v, want one that was refused, and one that changes nothing and is answered with the newest version", got)
			}
			interfere = false
			w.must()
			same(t, "status.size", 43, w.thing().Status.Size)
		})
	}
}

func TestConflictsAreSilentAtFirst(t *testing.T) {
	w := newWorld(t, newThing())
	err := error(nil)
	w.engine(doing("A", func(context.Context, *request) (ctrl.Result, error) { return ctrl.Result{}, err }))
	w.must()
	w.takeWrites()
	err = fmt.Errorf("writing the child: %w", conflictError())
	for i := 1; i < 6; i++ {
		w.conflicts()
		if got := w.conditionOf(condition.Ready); got != "True Ready" {
			t.Fatalf("after %d conflicts Ready is %q", i, got)
		}
	}
	w.wrote()
	w.fails()
	w.begins(condition.Ready, "False Conflict: ")
}

func TestStatusIsKeptWhenTheMetadataCantBeWritten(t *testing.T) {
	w := newWorld(t, newThing())
	w.fault = failOn("patch Thing", forbiddenError())
	w.engine(doing("A", changing(func(obj *Thing) {
		metav1.SetMetaDataLabel(&obj.ObjectMeta, "size", "7")
		obj.Status.Size = 7
	})))
	if err := w.fails(); !strings.Contains(err.Error(), "writing the metadata") || failure.Classify(err).Class != failure.ClassForbidden {
		t.Errorf("got %v", err)
	}
	same(t, "status.size", 7, w.thing().Status.Size)
	w.begins(condition.Ready, "False Forbidden: writing the metadata: ")
	w.takeWrites()
	w.fails()
	w.wrote("patch Thing a")
	w.fault = nil
	w.must()
	w.is(condition.Ready, "True Ready")
	same(t, "thing.Labels", "7", w.thing().Labels["size"])
}

func TestTheStatusCantBeWritten(t *testing.T) {
	for _, err := range []error{errFirst, forbiddenError()} {
		w := newWorld(t, newThing())
		w.fault = failOn("patch status", err)
		w.engine(doing("A", changing(func(obj *Thing) { obj.Status.Size = 7 })))
		if got := w.fails(); !errors.Is(got, err) || !strings.Contains(got.Error(), "writing the status") {
			t.Errorf("got %v", got)
		}
	}
}

func TestTheObjectGoesMeanwhile(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(doing("A", does(func(context.Context, *request) { w.remove(newThing()) })))
	w.conflicts()
	w.must()
	w.ended(journal.ResultGone)
}

func TestWhatIsNotOursIsRefused(t *testing.T) {
	tests := []struct {
		name   string
		change func(obj *Thing)
		want   string
	}{
		{"spec", func(obj *Thing) { obj.Spec.Size = 3 }, ".spec.size"},
		{"metadata", func(obj *Thing) { obj.GenerateName = "other-" }, ".metadata.generateName"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(doing("A", changing(func(obj *Thing) {
				test.change(obj)
				obj.Status.Size = 7
				metav1.SetMetaDataLabel(&obj.ObjectMeta, "size", "7")
			})))
			err := w.fails()
			if !errors.Is(err, step.ErrReadOnlyField) || !strings.Contains(err.Error(), test.want) || failure.Classify(err).Class != failure.ClassTerminal {
				t.Errorf("got %v, want ErrReadOnlyField and %q", err, test.want)
			}
			got := w.thing()
			same(t, "Spec.Size", 0, got.Spec.Size)
			same(t, "GenerateName", "", got.GenerateName)
			same(t, "Status.Size", 7, got.Status.Size)
			same(t, "Labels", "7", got.Labels["size"])
			if ready := w.conditionOf(condition.Ready); !strings.HasPrefix(ready, "False TerminalError: ") || !strings.Contains(ready, test.want) {
				t.Errorf("Ready: got %q", ready)
			}
			w.takeWrites()
			w.fails()
			w.wrote()
		})
	}
}
