// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/engine/managers"
	"github.com/ctrlkit/ctrlkit/internal/engine/text"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// GuardOptions configure [Guard]. Name is required.
type GuardOptions struct {
	// Name is a DNS label, the only one of its kind in the cluster: that of the operator. The finalizer is
	// references.ctrlkit.dev/ and Name.
	Name string

	// Recorder records an event about an object that is being deleted and is still used.
	Recorder events.EventRecorder

	// Observers receive the events of the journal, so that ctrlkit explain says what a deletion waits
	// for.
	Observers []journal.Observer

	// Controller are options for the controller.
	Controller controller.Options
}

// Guard keeps objects of a kind that no engine of the operator reconciles, such as the Secrets with its
// credentials, until nothing uses them any more: also when their whole namespace is deleted.
//
//   - An object that uses one puts a finalizer on it, before anything is made that needs it. Others are
//     not touched.
//   - The controller that Guard adds to mgr takes the finalizer off when nothing uses the object. It
//     asks the API server, not only the cache.
//   - Acts of a person stay done: a finalizer that is taken off by hand is not put back. The object
//     says so in the annotation [step.FinalizerRemovedAnnotation]; without that, it is put back.
//   - Before the operator is removed, delete the objects that it reconciles, or take the finalizer off.
//
// By are all references of the operator to the kind. Call it once for each kind, before mgr starts.
// The operator needs get, list, watch and patch for it.
func Guard[R client.Object](mgr ctrl.Manager, options GuardOptions, by ...User[R]) error {
	if len(validation.IsDNS1123Label(options.Name)) > 0 || len(by) == 0 {
		return fmt.Errorf("guard %q: it needs a name that is a DNS label, and references", options.Name)
	}
	gvk, err := mgr.GetClient().GroupVersionKindFor(newObject[R]())
	if err != nil {
		return fmt.Errorf("guard %q: %w: register the type with the scheme of the manager", options.Name, err)
	}
	name := options.Name + "-" + strings.ToLower(gvk.Kind) + "-guard"
	g := &guard[R]{
		protection: protection[R]{by}, kind: gvk.GroupKind(), client: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: options.Recorder, controller: name,
		observer: journal.Observers(options.Observers...), holds: &holds{finalizer: annotationPrefix + options.Name, states: map[types.UID]hold{}},
	}
	managers.SetQueue(&options.Controller, mgr.GetControllerOptions().UsePriorityQueue)
	b := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(options.Controller).For(newObject[R](), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return g.has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return g.has(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { g.forget(e.Object.GetUID()); return false },
	}))
	for _, u := range by {
		if err := u.hold(g.holds); err != nil {
			return fmt.Errorf("guard %q: %w", options.Name, err)
		}
		w := u.watch()
		b.Watches(w.Object, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			var requests []reconcile.Request
			for _, key := range w.Mapped(obj, g.kind) {
				requests = append(requests, reconcile.Request{NamespacedName: key})
			}
			return requests
		}), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(e event.UpdateEvent) bool { return w.Changed(e.ObjectOld, e.ObjectNew) },
			DeleteFunc: func(e event.DeleteEvent) bool { return w.Changed(e.Object, nil) },
		}))
	}
	return b.Complete(g)
}

// A guard takes the finalizer off what is not used any more.
type guard[R client.Object] struct {
	protection[R]
	*holds
	kind       schema.GroupKind
	client     client.Client
	live       client.Reader
	recorder   events.EventRecorder
	observer   journal.Observer
	controller string
}

// Reconcile implements [reconcile.Reconciler].
func (g *guard[R]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obj := newObject[R]()
	if err := g.client.Get(ctx, request.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !g.has(obj) {
		return reconcile.Result{}, nil
	}
	using, err := g.users(ctx, &step.Request[R]{Object: obj, Client: g.client, APIReader: g.live, Logger: log.FromContext(ctx), Now: time.Now()})
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case len(using) == 0:
		return reconcile.Result{}, g.release(ctx, g.client, obj)
	case !obj.GetDeletionTimestamp().IsZero():
		g.say(ctx, obj, named(using))
	}
	return reconcile.Result{}, nil
}

// say reports what the deletion of an object waits for.
func (g *guard[R]) say(ctx context.Context, obj R, who string) {
	if g.holds.said(obj.GetUID(), who) && g.recorder != nil {
		g.recorder.Eventf(obj, nil, corev1.EventTypeNormal, reasonUsed, "Delete", "%s", text.Shorten("it is deleted after "+who, text.Longest))
	}
	if g.observer == nil {
		return
	}
	run := journal.NewRun(g.observer, uuid.NewUUID(), g.controller, journal.ObjectOf(g.kind, client.ObjectKeyFromObject(obj)))
	run.Note(ctx, journal.Started{ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(), Deleting: true, Finalizer: g.finalizer})
	run.Note(ctx, journal.Finished{Result: journal.ResultWaiting, Outcome: journal.Outcome{Waits: []journal.Wait{{For: who + " to be deleted"}}}})
}

// holds are the finalizers of a [Guard], as this process has seen them.
type holds struct {
	finalizer string
	mu        sync.Mutex // guards states
	states    map[types.UID]hold
}

// A hold is what is known of the finalizer on one object: the versions in which it was last there, and in
// which the guard has taken it off.
type hold struct{ there, released, said string }

func (h *holds) has(obj client.Object) bool { return slices.Contains(obj.GetFinalizers(), h.finalizer) }

func (h *holds) change(uid types.UID, change func(*hold)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := h.states[uid]
	change(&state)
	h.states[uid] = state
}

func (h *holds) forget(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.states, uid)
}

// said notes what the deletion of an object waits for, and reports whether that is new.
func (h *holds) said(uid types.UID, who string) (isNew bool) {
	h.change(uid, func(s *hold) { isNew, s.said = s.said != who, who })
	return isNew
}

// put puts the finalizer on an object, as it was read. One that was there, and that the guard has not
// taken off, was taken off by another client.
func (h *holds) put(ctx context.Context, c client.Client, obj client.Object) error {
	if h == nil || !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if slices.Contains(removedFinalizers(obj), h.finalizer) {
		h.change(obj.GetUID(), func(s *hold) { s.there = "" }) // a person who removes the annotation wants it back
		return nil
	}
	removed, version := false, obj.GetResourceVersion()
	h.change(obj.GetUID(), func(s *hold) {
		if h.has(obj) && isNewer(version, s.there) {
			s.there = version
		}
		removed = !h.has(obj) && s.there != "" && isNewer(version, s.there) && !isNewer(s.released, s.there)
	})
	switch {
	case h.has(obj):
		return nil
	case removed:
		all := strings.Join(append(removedFinalizers(obj), h.finalizer), ",")
		return h.patch(ctx, c, obj, map[string]any{"annotations": map[string]string{step.FinalizerRemovedAnnotation: all}}, nil)
	}
	finalizers := append(slices.Clone(obj.GetFinalizers()), h.finalizer)
	return h.patch(ctx, c, obj, map[string]any{"finalizers": finalizers}, func(s *hold, version string) { s.there = version })
}

// release takes the finalizer off an object, as it was read.
func (h *holds) release(ctx context.Context, c client.Client, obj client.Object) error {
	finalizers := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(name string) bool { return name == h.finalizer })
	err := h.patch(ctx, c, obj, map[string]any{"finalizers": finalizers}, func(s *hold, version string) { s.released = version })
	return client.IgnoreNotFound(err)
}

// patch changes the metadata of an object, if it has not changed since it was read.
func (h *holds) patch(ctx context.Context, c client.Client, obj client.Object, metadata map[string]any, done func(s *hold, version string)) error {
	metadata["uid"], metadata["resourceVersion"] = obj.GetUID(), obj.GetResourceVersion()
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	answer.SetGroupVersionKind(gvk)
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("patching finalizer %s of %s: %w", h.finalizer, nameOf(c, obj), err)
	}
	if done != nil {
		h.change(obj.GetUID(), func(s *hold) { done(s, answer.GetResourceVersion()) })
	}
	return nil
}

// removedFinalizers are those that other clients have taken off an object, as it records them.
func removedFinalizers(obj client.Object) []string {
	return strings.FieldsFunc(obj.GetAnnotations()[step.FinalizerRemovedAnnotation], func(r rune) bool { return r == ',' })
}

// isNewer reports whether a version of an object is newer than another one. Any is newer than none.
func isNewer(version, than string) bool {
	if version == "" || than == "" {
		return version != ""
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}

var errGuarded = errors.New("is guarded already, by another call of reference.Guard")

// hold implements [User].
func (r *Reference[T, R]) hold(h *holds) error {
	if r.holds != nil {
		return fmt.Errorf("reference %s %w", r.Name, errGuarded)
	}
	r.holds = h
	return nil
}
