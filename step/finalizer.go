// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
)

// FinalizerRemovedAnnotation records on an object that another client has removed finalizers of the
// object's operators. Its value is these finalizers, separated by commas. They are not added again,
// and nothing is cleaned up when the object is deleted, until the annotation is removed or the
// finalizer is there again.
const FinalizerRemovedAnnotation = "ctrlkit.dev/finalizer-removed"

// finalizers are the finalizers of an engine.
type finalizers struct {
	own     string // empty if nothing is to be cleaned up
	retired []string
}

// newFinalizers returns the finalizers of an engine. Standard is the finalizer if the options name
// none, and example one for messages.
func newFinalizers(own, standard, example string, retired []string, cleans bool) (finalizers, error) {
	f := finalizers{retired: retired}
	for _, name := range retired {
		if len(validation.IsQualifiedName(name)) > 0 {
			return f, fmt.Errorf("retired finalizer %q: it is no qualified name, such as %q", name, example)
		}
	}
	if !cleans {
		if own != "" {
			return f, fmt.Errorf("finalizer %q, but no step has something to clean up: if an older version has put it on objects, it belongs into RetiredFinalizers", own)
		}
		return f, nil
	}
	f.own = own
	if f.own == "" {
		f.own = standard
	}
	if len(validation.IsQualifiedName(f.own)) > 0 || !strings.Contains(f.own, "/") {
		return f, fmt.Errorf("finalizer %q: a step has something to clean up, which needs a qualified name such as %q", f.own, example)
	}
	if slices.Contains(retired, f.own) {
		return f, fmt.Errorf("finalizer %q is retired and in use: take it out of RetiredFinalizers", f.own)
	}
	return f, nil
}

// protects reports whether an object has our finalizer, or one that an older version of the
// operator has put there.
func (f *finalizers) protects(obj client.Object) bool {
	return f.own != "" && slices.ContainsFunc(obj.GetFinalizers(), func(name string) bool { return name == f.own || f.isRetired(name) })
}

func (f *finalizers) isRetired(name string) bool { return slices.Contains(f.retired, name) }

// with returns names with our finalizer and without retired ones.
func (f *finalizers) with(names []string) []string {
	kept := slices.DeleteFunc(slices.Clone(names), f.isRetired)
	if !slices.Contains(kept, f.own) {
		kept = append(kept, f.own)
	}
	return kept
}

// without returns names without our finalizer and retired ones.
func (f *finalizers) without(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == f.own || f.isRetired(name) })
}

// reportRemoved reports in the log and with a Kubernetes event that another client has removed our
// finalizer.
func (f *finalizers) reportRemoved(logger logr.Logger, recorder events.EventRecorder, obj client.Object, consequence string) {
	logger.Info("A finalizer was removed", "finalizer", f.own, "uid", obj.GetUID(), "consequence", consequence)
	if recorder != nil {
		text := fmt.Sprintf("another client has removed finalizer %q: %s", f.own, consequence)
		recorder.Eventf(obj, nil, corev1.EventTypeWarning, reasonFinalizerRemoved, "Reconcile", "%s", text)
	}
}

// removedFinalizers are those that other clients have removed, as the object records it.
func removedFinalizers(obj client.Object) []string {
	value := obj.GetAnnotations()[FinalizerRemovedAnnotation]
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// finalizing keeps our finalizer on an object while there is something to clean up.
type finalizing[T client.Object] struct {
	*finalizers
	engine *Engine[T]
	saver  *saver[T]
	w      *writer[T] // of the saver
}

// ensure puts our finalizer on an object that needs it, before any step does what it stands for.
// Where an admission policy has put it there (see package admission) this costs nothing. A
// finalizer that another client has removed is not added again.
func (f *finalizing[T]) ensure(ctx context.Context) (ctrl.Result, error) {
	switch {
	case f.own == "":
		f.dropRetired()
		return ctrlkit.NoRequeue()
	case slices.Contains(f.w.read.GetFinalizers(), f.own):
		f.w.memory.protection.setHeld(f.w.read.GetResourceVersion())
		f.annotate(false)
		f.dropRetired()
		return ctrlkit.NoRequeue()
	case !f.protects(f.w.read) && f.w.memory.protection.isRemoved(f.w.read.GetResourceVersion(), slices.Contains(removedFinalizers(f.w.read), f.own)):
		f.reportRemovedOnce("it is not put back, and nothing will be cleaned up when the object is deleted. To have it back, remove the annotation " + FinalizerRemovedAnnotation)
		f.annotate(true)
		return ctrlkit.NoRequeue()
	}
	// It is an action because the conditions of the steps are user code, and may panic.
	needed := false
	result, err := ctrlkit.NewAction("checking whether there is something to clean up", func(context.Context) (ctrl.Result, error) {
		needed = slices.ContainsFunc(f.engine.plan.parts, func(p *part[T]) bool { return p.Claim == nil && p.wanted(f.w.req) && p.cleans(f.w.req) })
		return ctrlkit.NoRequeue()
	}).Run(ctx)
	if err != nil || !needed {
		return result, err
	}
	return ctrlkit.RequeueIfError(f.put(ctx))
}

// orGone returns the error of a write to the object. One that is gone is a conflict, as in
// [saver.save]: nothing is wrong with an object that was deleted meanwhile.
func orGone(doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	if apierrors.IsNotFound(err) {
		return failure.Mark(err, failure.WithClass(failure.ClassConflict))
	}
	return err
}

// put puts our finalizer on the object, if it is not there, and removes retired ones. Changes of
// steps meanwhile are saved later.
func (f *finalizing[T]) put(ctx context.Context) error {
	f.saver.mu.Lock()
	defer f.saver.mu.Unlock()
	if slices.Contains(f.w.base().GetFinalizers(), f.own) || f.w.memory.protection.isReleased() {
		return nil
	}
	// Noted before it is written: if the answer is lost, or the object is removed at the same
	// instant, the cleanup is pending.
	f.w.memory.protection.setSent()
	protected := f.w.base().DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	protected.SetFinalizers(f.with(protected.GetFinalizers()))
	if err := f.w.write(ctx, partMetadata, protected, map[string]any{"finalizers": protected.GetFinalizers()}); err != nil {
		return orGone(fmt.Sprintf("putting finalizer %q on the object", f.own), err)
	}
	f.w.req.Object.SetFinalizers(f.with(f.w.req.Object.GetFinalizers()))
	f.w.memory.protection.setHeld(f.w.base().GetResourceVersion())
	if f.w.rebased {
		// The next steps must not follow from a stale version: the object may be another one by
		// now, or about to be deleted.
		return f.saver.awaitNewest()
	}
	return nil
}

// putClaim writes the metadata that a claim has changed, in one patch with our finalizer, if the
// object does not have that.
func (f *finalizing[T]) putClaim(ctx context.Context) error {
	f.saver.mu.Lock()
	defer f.saver.mu.Unlock()
	changed, err := f.saver.changes()
	if err == nil {
		err = refuse(changed)
	}
	if err != nil {
		return err
	}
	metadata, _ := changed["metadata"].(map[string]any)
	obj, protection := f.w.req.Object, &f.w.memory.protection
	if !slices.Contains(f.w.base().GetFinalizers(), f.own) && !protection.isReleased() {
		protection.setSent() // as in put
		obj.SetFinalizers(f.with(obj.GetFinalizers()))
		if metadata == nil {
			metadata = make(map[string]any, 1)
		}
		metadata["finalizers"] = obj.GetFinalizers()
	}
	if len(metadata) == 0 {
		return nil
	}
	if err := f.w.write(ctx, partMetadata, obj, metadata); err != nil {
		return orGone("writing the claim", err)
	}
	if f.protects(f.w.base()) {
		protection.setHeld(f.w.base().GetResourceVersion())
	}
	if f.w.rebased {
		return f.saver.awaitNewest()
	}
	return nil
}

// dropRetired removes retired finalizers, to be saved at the end of the reconcile.
func (f *finalizing[T]) dropRetired() {
	if slices.ContainsFunc(f.w.req.Object.GetFinalizers(), f.isRetired) {
		f.w.req.Object.SetFinalizers(slices.DeleteFunc(slices.Clone(f.w.req.Object.GetFinalizers()), f.isRetired))
	}
}

// remove removes our finalizer and retired ones, to be saved at the end of the reconcile, and
// returns how many others there are.
func (f *finalizing[T]) remove() (others int) {
	kept := f.without(f.w.req.Object.GetFinalizers())
	f.w.req.Object.SetFinalizers(kept)
	return len(kept)
}

// annotate records on the object that our finalizer was removed, or that it was not.
func (f *finalizing[T]) annotate(removed bool) {
	all := removedFinalizers(f.w.read)
	if slices.Contains(all, f.own) == removed {
		return
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == f.own })
	if removed {
		all = append(all, f.own)
	}
	annotations := maps.Clone(f.w.req.Object.GetAnnotations())
	if annotations == nil {
		annotations = make(map[string]string)
	}
	annotations[FinalizerRemovedAnnotation] = strings.Join(all, ",")
	if len(all) == 0 {
		delete(annotations, FinalizerRemovedAnnotation)
	}
	f.w.req.Object.SetAnnotations(annotations)
}

// wasRemoved reports whether another client has removed our finalizer from an object that is being
// deleted and does not have it, as far as this process or the object's annotation shows.
func (f *finalizing[T]) wasRemoved() bool {
	return f.w.memory.protection.wasHeld() || slices.Contains(removedFinalizers(f.w.read), f.own)
}

// reportRemovedOnce reports that another client has removed our finalizer, unless that is known.
func (f *finalizing[T]) reportRemovedOnce(consequence string) {
	if f.w.memory.protection.setReleased() {
		f.reportRemoved(f.w.req.Logger, f.engine.options.Recorder, f.w.read, consequence)
	}
}

// errStaleFinalizer says that the cache shows a finalizer that the object does not have any more.
var errStaleFinalizer = errors.New("the cache is stale")

// confirm returns nil if the object still has our finalizer on the API server: a cleanup can't be
// undone, and a client that has just removed the finalizer does not want it. Without
// Options.APIReader the cache is believed.
func (f *finalizing[T]) confirm(ctx context.Context) error {
	if f.w.resource.apiReader == nil {
		return nil
	}
	obj, err := f.w.resource.metadata(ctx, f.w.key(), f.w.record.Journal)
	switch {
	case err == nil && obj.UID == f.w.read.GetUID() && f.protects(obj):
		f.w.req.managed = obj.ManagedFields
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("asking whether the object still has its finalizer: %w", err)
	}
	return errStaleFinalizer
}
