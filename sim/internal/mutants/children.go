// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/sim"
)

func newWidget() *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "default"}, Spec: WidgetSpec{Size: 1, Image: "nginx:1", Note: "first", Secret: "credentials"}}
}

func newSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials", Namespace: "default"}, StringData: map[string]string{"password": "correct horse battery staple"}}
}

// childWorkload is the life of a Widget with children.
func childWorkload(bug Bug) sim.Workload {
	widget := newWidget()
	return sim.Workload{
		Name: "children", Scheme: scheme, CRDs: definitions, Objects: []client.Object{newSecret()},
		Operator: asManager(func(mgr ctrl.Manager, p *sim.Process) error {
			r := &children{Client: mgr.GetClient(), live: mgr.GetAPIReader(), bug: bug, done: map[client.ObjectKey]bool{}}
			r.event = func(w *Widget) {
				mgr.GetEventRecorder("widgets").Eventf(w, nil, "Normal", "Reconciled", "Reconcile", "done")
			}
			return r.setup(mgr)
		}),
		Script: func(w *sim.World) {
			w.Create(widget)
			w.Settle()
			sim.Detour(w, widget, func(x *Widget) { x.Spec.Note, x.Spec.Child = "detour", "elsewhere" })
			sim.Update(w, widget, func(x *Widget) { x.Spec.Size, x.Spec.Note = 2, "" })
			w.Settle()
			sim.Update(w, widget, func(x *Widget) { x.Spec.Comment = "nothing to do" })
			w.Settle()
			w.Delete(widget)
			w.Settle()
		},
	}
}

// secretWorkload is childWorkload with a user who changes the Secret, which is there before the
// operator starts, and does not wait in between.
func secretWorkload(bug Bug) sim.Workload {
	w := childWorkload(bug)
	w.Script = func(w *sim.World) {
		widget, secret := newWidget(), newSecret()
		w.Create(widget)
		w.Sleep(time.Second)
		sim.Update(w, secret, func(s *corev1.Secret) { s.Labels = map[string]string{"rotated": "yes"} })
		w.Settle()
		w.Delete(widget)
		w.Sleep(time.Second)
		w.Delete(secret)
		w.Settle()
	}
	return w
}

// children keeps a ConfigMap and a Deployment for each Widget.
type children struct {
	client.Client
	live  client.Reader
	bug   Bug
	event func(*Widget)

	mu       sync.Mutex
	done     map[client.ObjectKey]bool // remembersInMemory
	tries    int
	written  int // of the children
	observed int64
}

func (r *children) setup(mgr ctrl.Manager) error {
	var owned []builder.OwnsOption
	if r.bug == hidesChildUpdates {
		owned = append(owned, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	b := ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}, owned...).Owns(&appsv1.Deployment{})
	if r.bug != noRequeue {
		b = b.Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, secret client.Object) []reconcile.Request {
			return usersOf(ctx, r, secret)
		}))
	}
	if r.bug == edgeTriggered || r.bug == noOwner {
		b = b.Watches(&Widget{}, handler.Funcs{DeleteFunc: r.deleted})
	}
	return b.Complete(r)
}

// queue is that of a controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// deleted cleans up in the handler of the event: the mistake of noOwner and edgeTriggered.
func (r *children) deleted(ctx context.Context, e event.DeleteEvent, _ queue) {
	key := client.ObjectKeyFromObject(e.Object)
	for _, obj := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key.Name + "-config", Namespace: key.Namespace}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}},
	} {
		if err := r.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cleaning up")
		}
	}
}

func (r *children) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if r.bug == leaksGoroutines {
		go func() { <-make(chan struct{}) }()
	}
	if r.bug == panicsOnEmptyStatus && meta.FindStatusCondition(w.Status.Conditions, "Ready") == nil && w.Status.ObservedGeneration == 0 && r.isOld(ctx, w) {
		panic("a Widget that has children has conditions")
	}
	if r.bug == remembersInMemory && r.remembers(req.NamespacedName, w) {
		return ctrl.Result{}, nil
	}
	before := w.DeepCopy().Status
	result, err := r.work(ctx, w)
	if r.bug == eventEachTime {
		r.event(w)
	}
	if err != nil && r.gaveUp(err) {
		return ctrl.Result{}, nil
	}
	if statusErr := r.save(ctx, w, before); statusErr != nil && err == nil {
		if r.gaveUp(statusErr) {
			return ctrl.Result{}, nil
		}
		return result, statusErr
	}
	return result, err
}

// isOld reports whether the Widget has a child already.
func (r *children) isOld(ctx context.Context, w *Widget) bool {
	return r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name}, &appsv1.Deployment{}) == nil
}

func (r *children) remembers(key client.ObjectKey, w *Widget) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key.Name += "/" + strconv.FormatInt(w.Generation, 10)
	was := r.done[key]
	r.done[key] = true
	return was
}

// work makes the children, and says in the conditions how that went.
func (r *children) work(ctx context.Context, w *Widget) (ctrl.Result, error) {
	r.observe(w)
	if r.bug == conditionsFromZero {
		w.Status.Conditions = nil
	}
	secret := &corev1.Secret{}
	reader := client.Reader(r.Client)
	if r.bug == noRequeue || r.bug == noBackoff {
		reader = r.live
	}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Secret}, secret); err != nil {
		return r.withoutSecret(w, err)
	}
	if r.bug != conditionsFromZero {
		r.condition(w, "SecretFound", metav1.ConditionTrue, "Found", "the Secret is there")
	}
	if r.bug == readyTooEarly {
		if meta.IsStatusConditionTrue(w.Status.Conditions, "Ready") && meta.FindStatusCondition(w.Status.Conditions, "Ready").ObservedGeneration == w.Generation {
			return ctrl.Result{}, nil
		}
		before := WidgetStatus{}
		r.condition(w, "Ready", metav1.ConditionTrue, "Ready", "everything is there")
		if err := r.save(ctx, w, before); err != nil {
			return ctrl.Result{}, err
		}
	}
	written := r.written
	wait, err := r.children(ctx, w, secret)
	r.observeChanges(w, written)
	switch {
	case err != nil:
		message := "making the children: " + reason(err)
		if r.bug == secretInCondition {
			message += " of " + string(secret.Data["password"])
		}
		if r.bug == counterInMessage {
			message += " at " + time.Now().Format(time.StampNano)
		}
		r.condition(w, "Ready", metav1.ConditionFalse, "Failed", message)
		return ctrl.Result{}, err
	case wait != "":
		r.condition(w, "Ready", metav1.ConditionFalse, "NameTaken", wait)
		return ctrl.Result{RequeueAfter: patience}, nil
	}
	if available, err := r.available(ctx, w); err != nil {
		return ctrl.Result{}, err
	} else if !available && r.bug != readyTooEarly {
		r.condition(w, "Ready", metav1.ConditionFalse, "Unavailable", "the Deployment is not available")
	} else {
		r.condition(w, "Ready", metav1.ConditionTrue, "Ready", "everything is there")
	}
	if r.bug == conditionsFromZero {
		r.condition(w, "SecretFound", metav1.ConditionTrue, "Found", "the Secret is there")
	}
	return ctrl.Result{}, nil
}

func (r *children) observe(w *Widget) {
	switch r.bug {
	case observedWithChanges:
	case observedFromMemory:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.observed++
		w.Status.ObservedGeneration = r.observed
	default:
		w.Status.ObservedGeneration = w.Generation
	}
}

// observeChanges is observe of observedWithChanges. There is one worker.
func (r *children) observeChanges(w *Widget, written int) {
	if r.bug == observedWithChanges && r.written > written {
		w.Status.ObservedGeneration = w.Generation
	}
}

// reason is the part of an error that is the same each time.
func reason(err error) string { return string(apierrors.ReasonForError(err)) }

// gaveUp reports whether one of the mistakes makes an error the end.
func (r *children) gaveUp(err error) bool {
	switch r.bug {
	case swallowsErrors:
		return true
	case swallowsConflict:
		return apierrors.IsConflict(err)
	case forbiddenIsTerminal:
		return apierrors.IsForbidden(err)
	}
	return false
}

func (r *children) withoutSecret(w *Widget, err error) (ctrl.Result, error) {
	if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	message := "Secret " + w.Spec.Secret + " is not there"
	if r.bug == counterInMessage {
		r.mu.Lock()
		r.tries++
		message += fmt.Sprintf(" (try %d)", r.tries)
		r.mu.Unlock()
	}
	r.condition(w, "SecretFound", metav1.ConditionFalse, "NotFound", message)
	r.condition(w, "Ready", metav1.ConditionFalse, "SecretNotFound", message)
	if r.bug == noBackoff {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	return ctrl.Result{}, nil // the Secret is watched
}

func (r *children) condition(w *Widget, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: w.Generation})
	if r.bug == transitionEachTime {
		meta.FindStatusCondition(w.Status.Conditions, kind).LastTransitionTime = metav1.Now()
	}
}

// save writes the status if it has changed.
func (r *children) save(ctx context.Context, w *Widget, before WidgetStatus) error {
	if sameStatus(w.Status, before) && r.bug != writesStatusAlways {
		return nil
	}
	switch r.bug {
	case blindStatusOverwrite:
		patch := w.DeepCopy()
		empty := w.DeepCopy()
		empty.Status = WidgetStatus{}
		return r.Status().Patch(ctx, patch, client.MergeFrom(empty))
	case swallowsConflict:
		err := r.Status().Update(ctx, w)
		if apierrors.IsConflict(err) {
			return nil
		}
		return err
	case writesStatusAlways:
		if w.Annotations == nil {
			w.Annotations = map[string]string{}
		}
	}
	return r.Status().Update(ctx, w)
}
