// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"fmt"
	"maps"
	"reflect"
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
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// The mistakes of an operator that keeps a ConfigMap and a Deployment for each Widget.
const (
	adoptsForeign        Bug = "adopts-foreign"
	noOwner              Bug = "no-owner-reference"
	readyTooEarly        Bug = "ready-too-early"
	conditionsFromZero   Bug = "conditions-from-zero"
	transitionEachTime   Bug = "transition-each-time"
	counterInMessage     Bug = "counter-in-message"
	swallowsConflict     Bug = "swallows-conflict"
	swallowsErrors       Bug = "swallows-errors"
	existsIsDone         Bug = "already-exists-is-done"
	comparesDefaults     Bug = "compares-with-defaults"
	wipesAnnotations     Bug = "wipes-annotations"
	hidesChildUpdates    Bug = "generation-predicate-on-child"
	keepsOldChild        Bug = "keeps-old-child"
	keepsOldField        Bug = "keeps-old-field"
	remembersInMemory    Bug = "remembers-in-memory"
	noRequeue            Bug = "waits-for-nothing"
	forbiddenIsTerminal  Bug = "forbidden-is-terminal"
	noBackoff            Bug = "no-backoff"
	secretInCondition    Bug = "secret-in-condition"
	leaksGoroutines      Bug = "leaks-goroutines"
	panicsOnEmptyStatus  Bug = "panics-on-empty-status"
	observedFromMemory   Bug = "observed-generation-from-memory"
	edgeTriggered        Bug = "edge-triggered"
	writesStatusAlways   Bug = "writes-status-always"
	eventEachTime        Bug = "event-each-time"
	identityIsName       Bug = "identity-is-name"
	blindStatusOverwrite Bug = "blind-status-overwrite"
)

func childMutants() []Mutant {
	m := func(bug Bug, class, published string, caughtBy ...oracle.Name) Mutant {
		return Mutant{Bug: bug, Class: class, Published: published, CaughtBy: caughtBy, Workload: childWorkload}
	}
	return []Mutant{
		m(adoptsForeign, "an object of the wanted name is taken over, whatever its owner", "wrangler apply's silent change of owners", oracle.ForeignUntouched, oracle.SameEnd),
		m(noOwner, "children have no owner reference, and are deleted by a cleanup that a crash or a missed event prevents", "rabbitmq cluster-operator and others in Sieve (OSDI 2022)", oracle.SameEnd),
		m(readyTooEarly, "Ready is set before the child is there, and not evaluated again", "a condition satisfied by a half-done step: cass-operator in Anvil (OSDI 2024)", oracle.SameEnd, oracle.SaysWhy),
		m(conditionsFromZero, "the list of conditions is made anew in each reconcile", "conditions that vanish on errors: Flux's linter exists for it", oracle.ConditionsStay, oracle.TransitionTime),
		m(transitionEachTime, "lastTransitionTime is set in each reconcile", "two operators that woke each other for ever", oracle.SilentWhenIdle, oracle.TransitionTime, oracle.BoundedRequests),
		m(counterInMessage, "the text of an error changes at every try, and is written into the status", "status storms by request ids of cloud providers", oracle.BoundedRequests, oracle.BecomesIdle, oracle.SilentWhenIdle),
		m(swallowsConflict, "a conflict is taken for the success of another writer", "a status handler that sets its condition True on a conflict", oracle.SameEnd),
		m(swallowsErrors, "errors of the API server are logged and forgotten", "Acto (SOSP 2023): errors ignored in eleven operators", oracle.SameEnd),
		m(existsIsDone, "AlreadyExists is taken for done, whatever the owner of the object", "silent takeover of objects of other owners", oracle.SameEnd),
		m(comparesDefaults, "what is wanted is compared with what the server has made of it", "hot loops by server defaults, reported for most operators", oracle.SilentWhenIdle, oracle.BoundedRequests),
		m(wipesAnnotations, "annotations and labels of others are removed from the child", "a fight with webhooks that inject", oracle.BoundedRequests, oracle.BecomesIdle, oracle.SilentWhenIdle),
		m(hidesChildUpdates, "a generation predicate hides changes of a kind without generations", "predicates on ConfigMaps: kubebuilder's documentation warns", oracle.SameEnd),
		m(keepsOldChild, "a child stays when another name is wanted", "Acto: orphans after a change of the spec", oracle.SameEnd),
		m(keepsOldField, "what is taken out of the spec is not taken out of the child", "Acto: declarations that can't be taken back", oracle.SameEnd),
		m(remembersInMemory, "what was done is kept in a map by name", "state lost at restarts and kept over re-creation", oracle.SameEnd),
		m(noRequeue, "waiting for something that is neither watched nor polled", "operators that have to be restarted after the Secret was created", oracle.SameEnd),
		m(forbiddenIsTerminal, "403 ends the work for ever", "errors classified as fatal although RBAC was applied a second later", oracle.SameEnd),
		m(noBackoff, "a failure is tried again at once, for ever", "request storms while a Secret is missing", oracle.BoundedRequests),
		m(secretInCondition, "the condition of a failure quotes what was to be written", "credentials in status messages", oracle.NoSecret),
		m(leaksGoroutines, "each reconcile starts a goroutine that does not end", "watches per object that are never stopped", oracle.NoGoroutineLeft),
		m(panicsOnEmptyStatus, "a status that another client has removed is not expected", "Acto: panics on states that the operator itself never makes", oracle.SameEnd, oracle.BecomesIdle, oracle.SilentWhenIdle, oracle.NoPanic),
		m(observedFromMemory, "observedGeneration is taken from a counter of the process", "status.observedGeneration that falls after a restart", oracle.ObservedGeneration, oracle.SilentWhenIdle, oracle.SameEnd, oracle.BoundedRequests),
		m(edgeTriggered, "cleanup happens when the deletion is seen, and only then", "Sieve: deletions missed over a restart", oracle.SameEnd),
		m(writesStatusAlways, "the status is written in each reconcile", "apply-every-time frameworks", oracle.SilentWhenIdle, oracle.BoundedRequests),
		m(eventEachTime, "an Event is written in each reconcile", "event storms", oracle.SilentWhenIdle, oracle.BoundedRequests),
		m(identityIsName, "a child is ours when it has our name in a label, whose ever UID it belongs to", "an object deleted and created again under the same name", oracle.SameEnd, oracle.SameWork),
		m(blindStatusOverwrite, "the status is patched without the version that was read, from a stale copy", "status lost or retried blindly on conflicts", oracle.ObservedGeneration, oracle.SameEnd),
	}
}

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
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
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

// children keeps a ConfigMap and a Deployment for each Widget.
type children struct {
	client.Client
	live  client.Reader
	bug   Bug
	event func(*Widget)

	mu       sync.Mutex
	done     map[client.ObjectKey]bool // remembersInMemory
	tries    int
	observed int64
}

func (r *children) setup(mgr ctrl.Manager) error {
	var owned []builder.OwnsOption
	if r.bug == hidesChildUpdates {
		owned = append(owned, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	b := ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}, owned...).Owns(&appsv1.Deployment{})
	if r.bug != noRequeue {
		b = b.Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.usersOf))
	}
	if r.bug == edgeTriggered || r.bug == noOwner {
		b = b.Watches(&Widget{}, handler.Funcs{DeleteFunc: r.deleted})
	}
	return b.Complete(r)
}

// usersOf returns the Widgets that need a Secret.
func (r *children) usersOf(ctx context.Context, secret client.Object) []reconcile.Request {
	list := &WidgetList{}
	if err := r.List(ctx, list, client.InNamespace(secret.GetNamespace())); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, w := range list.Items {
		if w.Spec.Secret == secret.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&w)})
		}
	}
	return requests
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
	before := w.Status
	before.Conditions = append([]metav1.Condition(nil), w.Status.Conditions...)
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
	w.Status.ObservedGeneration = w.Generation
	if r.bug == observedFromMemory {
		r.mu.Lock()
		r.observed++
		w.Status.ObservedGeneration = r.observed
		r.mu.Unlock()
	}
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
	wait, err := r.children(ctx, w, secret)
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
		return ctrl.Result{RequeueAfter: 30 * time.Second}, nil
	}
	r.condition(w, "Ready", metav1.ConditionTrue, "Ready", "everything is there")
	if r.bug == conditionsFromZero {
		r.condition(w, "SecretFound", metav1.ConditionTrue, "Found", "the Secret is there")
	}
	return ctrl.Result{}, nil
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

// children makes the children what they should be. wait says why it can't continue.
func (r *children) children(ctx context.Context, w *Widget, secret *corev1.Secret) (wait string, err error) {
	var pruneErr error
	if r.bug != keepsOldChild {
		pruneErr = r.prune(ctx, w)
	}
	wait, err = r.configMap(ctx, w, secret)
	waitDeployment, deploymentErr := r.deployment(ctx, w)
	for _, e := range []error{err, deploymentErr, pruneErr} {
		if e != nil {
			return "", e
		}
	}
	if wait == "" {
		wait = waitDeployment
	}
	return wait, nil
}

func configName(w *Widget) string {
	if w.Spec.Child != "" {
		return w.Spec.Child
	}
	return w.Name + "-config"
}

// prune deletes ConfigMaps of the Widget that are not wanted.
func (r *children) prune(ctx context.Context, w *Widget) error {
	list := &corev1.ConfigMapList{}
	if err := r.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		cm := &list.Items[i]
		if cm.Name == configName(w) || !metav1.IsControlledBy(cm, w) || cm.DeletionTimestamp != nil {
			continue
		}
		if err := r.Delete(ctx, cm, client.Preconditions{UID: &cm.UID}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// owns reports whether an object is the Widget's.
func (r *children) owns(w *Widget, obj client.Object) bool {
	switch r.bug {
	case adoptsForeign, noOwner:
		return true
	case identityIsName:
		return obj.GetLabels()["widget"] == w.Name
	}
	return metav1.IsControlledBy(obj, w)
}

// own makes an object the Widget's.
func (r *children) own(w *Widget, obj client.Object) error {
	if r.bug == noOwner {
		return nil
	}
	if r.bug == edgeTriggered {
		return nil
	}
	obj.SetOwnerReferences(nil)
	return ctrl.SetControllerReference(w, obj, r.Scheme())
}

func (r *children) configMap(ctx context.Context, w *Widget, secret *corev1.Secret) (wait string, err error) {
	data := map[string]string{"size": strconv.Itoa(int(w.Spec.Size)), "secret": secret.Name}
	if w.Spec.Note != "" {
		data["note"] = w.Spec.Note
	}
	cm := &corev1.ConfigMap{}
	err = r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: configName(w)}, cm)
	switch {
	case apierrors.IsNotFound(err):
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: configName(w), Labels: map[string]string{"widget": w.Name}}, Data: data}
		return r.create(ctx, w, cm)
	case err != nil:
		return "", err
	case !r.owns(w, cm) && r.bug != edgeTriggered:
		if r.bug == existsIsDone {
			return "", nil
		}
		return "the name of the ConfigMap is taken", nil
	}
	changed := cm.DeepCopy()
	changed.Data = data
	if r.bug == keepsOldField {
		changed.Data = maps.Clone(cm.Data)
		maps.Copy(changed.Data, data)
	}
	if r.bug == wipesAnnotations {
		changed.Annotations, changed.Labels = nil, map[string]string{"widget": w.Name}
	}
	if r.bug == adoptsForeign {
		if err := r.own(w, changed); err != nil {
			return "", err
		}
	}
	if reflect.DeepEqual(cm, changed) {
		return "", nil
	}
	return "", r.Update(ctx, changed)
}

// create creates a child.
func (r *children) create(ctx context.Context, w *Widget, obj client.Object) (wait string, err error) {
	if err := r.own(w, obj); err != nil {
		return "", err
	}
	err = r.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) && r.bug == existsIsDone {
		return "", nil
	}
	return "", err
}

func (r *children) deployment(ctx context.Context, w *Widget) (wait string, err error) {
	labels := map[string]string{"widget": w.Name}
	wanted := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &w.Spec.Size, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: w.Spec.Image}}},
			},
		},
	}
	d := &appsv1.Deployment{}
	err = r.Get(ctx, client.ObjectKeyFromObject(wanted), d)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, w, wanted)
	case err != nil:
		return "", err
	case !r.owns(w, d) && r.bug != edgeTriggered:
		if r.bug == existsIsDone {
			return "", nil
		}
		return "the name of the Deployment is taken", nil
	}
	if r.bug == comparesDefaults {
		if reflect.DeepEqual(d.Spec, wanted.Spec) {
			return "", nil
		}
		changed := d.DeepCopy()
		changed.Spec = wanted.Spec
		return "", r.Update(ctx, changed)
	}
	changed := d.DeepCopy()
	if r.bug == adoptsForeign {
		if err := r.own(w, changed); err != nil {
			return "", err
		}
	}
	changed.Spec.Replicas = wanted.Spec.Replicas
	if len(changed.Spec.Template.Spec.Containers) > 0 {
		changed.Spec.Template.Spec.Containers[0].Image = w.Spec.Image
	}
	if reflect.DeepEqual(d, changed) {
		return "", nil
	}
	return "", r.Update(ctx, changed)
}
