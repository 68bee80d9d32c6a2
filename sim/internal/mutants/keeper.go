// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The mistakes of an operator that keeps a ConfigMap and a volume for each Widget, whose end is the
// same with a fault and without one.
const (
	readyBeforeWork   Bug = "ready-before-work"
	leavesVolume      Bug = "leaves-volume"
	changesCache      Bug = "changes-cached-object"
	refusedForEver    Bug = "refused-for-ever"
	failsForEver      Bug = "fails-for-ever"
	lateFinalizer     Bug = "finalizer-during-deletion"
	appliesAlways     Bug = "applies-always"
	keepsTransition   Bug = "keeps-transition-time"
	resetsStatus      Bug = "resets-status"
	statusFromHistory Bug = "status-from-history"
	resurrects        Bug = "resurrects"
	cleansBySpec      Bug = "cleans-up-by-spec"
	silentlyInUse     Bug = "silently-in-use"
)

func keeperMutants() []Mutant {
	m := mutantsOf(keeperWorkload)
	held := m(lateFinalizer, "the finalizer is added whenever it is missing, also during the deletion", "objects stuck in deletion with a log full of refusals", oracle.NoLateFinalizer)
	held.Workload = heldWorkload
	cleans := m(cleansBySpec, "the finalizer is removed by code that runs only while the spec asks for what it is for", "KubeRay: a RayCluster that stays for good after fault tolerance was switched off", oracle.DeletionEnds)
	cleans.Workload = switchedOffWorkload
	silent := m(silentlyInUse, "a Widget that is in use is held, and nothing says so", "objects stuck in deletion, and finalizers that people remove by hand", oracle.DeletionEnds)
	silent.Workload = inUseWorkload
	return []Mutant{
		held, cleans, silent,
		m(readyBeforeWork, "Ready is written before the work is done, and is right a moment later", "pipelines that continue before the first child is there", oracle.ReadyWhenDone),
		m(leavesVolume, "a volume has no owner, and is not deleted with its Widget", "Acto (SOSP 2023): volumes left after the deletion", oracle.NoOrphans),
		m(changesCache, "a function that maps events to requests changes the object that it gets", "client-go's detector of cache mutations exists for it", oracle.CacheUntouched),
		m(refusedForEver, "the server refuses a creation each time, in every run", "an operator that always fails passes as its own reference", oracle.EndsWell),
		m(failsForEver, "each reconcile ends with an error, although everything is done", "optional objects that are required", oracle.EndsWell),
		m(appliesAlways, "a child is applied in each reconcile, whether it has changed or not", "apply-every-time operators", oracle.NoNoopWrites),
		m(keepsTransition, "the status of a condition moves, and its lastTransitionTime stays", "conditions that are assigned field by field", oracle.TransitionTime),
		m(resetsStatus, "the status is emptied before it is computed anew", "status.conditions that flap to nothing", oracle.ConditionsStay, oracle.ObservedGeneration),
		m(statusFromHistory, "a status that users read is only written at the beginning", "agent-sandbox: a selector that depends on history", oracle.SameEnd),
		m(resurrects, "the finalizer is removed by CreateOrUpdate, which creates the object when it is gone meanwhile", "rabbitmq cluster-operator: an empty cluster after the deletion of one", oracle.SameEnd),
	}
}

// keeperWorkload is the life of a Widget with a ConfigMap and a volume.
func keeperWorkload(bug Bug) sim.Workload { return keeperLife("keeper", bug) }

// heldWorkload is the same, but another client holds the deletion up, as it may for long.
func heldWorkload(bug Bug) sim.Workload { return keeperLife("held", bug, "example.com/hold") }

// switchedOffWorkload is the life of a Widget whose Note, which asks for a volume, is taken away.
func switchedOffWorkload(bug Bug) sim.Workload {
	widget := newWidget()
	w := keeperLife("switched-off", bug)
	w.Script = func(w *sim.World) {
		w.Create(widget)
		w.Settle()
		sim.Update(w, widget, func(x *Widget) { x.Spec.Note = "" })
		w.Settle()
		w.Delete(widget)
		w.Settle()
	}
	return w
}

// inUseWorkload is the life of a Widget that may not go as long as another client says, in an
// annotation, that it is in use.
func inUseWorkload(bug Bug) sim.Workload {
	widget := newWidget()
	widget.Annotations = map[string]string{inUse: "true"}
	w := keeperLife("in-use", bug)
	w.Script = func(w *sim.World) {
		w.Create(widget)
		w.Settle()
		w.Delete(widget)
		w.Settle()
	}
	return w
}

// inUse is the annotation of Widgets that are in use.
const inUse = "mutants.sim.ctrlkit.dev/in-use"

func keeperLife(name string, bug Bug, finalizers ...string) sim.Workload {
	widget := newWidget()
	return sim.Workload{
		Name: name, Scheme: scheme, CRDs: definitions, Objects: []client.Object{newSecret()},
		Operator: asManager(func(mgr ctrl.Manager, p *sim.Process) error {
			r := &keeper{Client: mgr.GetClient(), bug: bug}
			return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}).Owns(&corev1.PersistentVolumeClaim{}).
				Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.usersOf)).Complete(r)
		}),
		Script: func(w *sim.World) {
			w.Create(widget)
			w.Settle()
			sim.Update(w, widget, func(x *Widget) { x.Spec.Size = 0 })
			w.Settle()
			sim.Update(w, widget, func(x *Widget) { x.Finalizers = append(x.Finalizers, finalizers...) })
			w.Delete(widget)
			w.Settle()
		},
	}
}

// keeper keeps a ConfigMap and a volume for each Widget.
type keeper struct {
	client.Client
	bug Bug
}

// usersOf returns the Widgets that need a Secret.
func (r *keeper) usersOf(ctx context.Context, secret client.Object) []reconcile.Request {
	if r.bug == changesCache {
		secret.SetLabels(map[string]string{"seen": "true"}) //nolint:shared // the mistake of this mutant
	}
	return usersOf(ctx, r, secret)
}

const keeperFinalizer = "mutants.sim.ctrlkit.dev/keeper"

func (r *keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deleted := !w.DeletionTimestamp.IsZero()
	switch {
	case (!deleted || r.bug == lateFinalizer && w.Status.ExternalID == "gone") && controllerutil.AddFinalizer(w, keeperFinalizer):
		return ctrl.Result{}, r.Update(ctx, w)
	case deleted:
		return ctrl.Result{}, r.finish(ctx, w)
	}
	before := w.DeepCopy().Status
	if r.bug == readyBeforeWork && w.Status.ObservedGeneration != w.Generation {
		r.report(w, "", nil)
		if err := saveStatus(ctx, r, w, before); err != nil {
			return ctrl.Result{}, err
		}
		before = w.DeepCopy().Status
	}
	if r.bug == resetsStatus && w.Status.ObservedGeneration != w.Generation && w.Generation > 1 {
		w.Status = WidgetStatus{}
		if err := saveStatus(ctx, r, w, before); err != nil {
			return ctrl.Result{}, err
		}
		before = WidgetStatus{}
	}
	wait, err := r.keep(ctx, w)
	r.report(w, wait, err)
	if statusErr := saveStatus(ctx, r, w, before); statusErr != nil {
		return ctrl.Result{}, errors.Join(err, statusErr)
	}
	switch {
	case err == nil && r.bug == failsForEver:
		err = r.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "optional"}, &corev1.ConfigMap{})
	case wait != "":
		return ctrl.Result{RequeueAfter: patience}, err
	}
	return ctrl.Result{}, err
}

// finish lets a Widget go.
func (r *keeper) finish(ctx context.Context, w *Widget) error {
	switch {
	case r.bug == cleansBySpec && w.Spec.Note == "":
		return nil
	case w.Annotations[inUse] != "":
		return r.sayInUse(ctx, w)
	case !controllerutil.RemoveFinalizer(w, keeperFinalizer):
		return nil
	}
	if r.bug == resurrects {
		time.Sleep(time.Second) // until the children know that they are to end
		again := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, again, func() error {
			controllerutil.RemoveFinalizer(again, keeperFinalizer)
			return nil
		})
		return client.IgnoreNotFound(err)
	}
	if r.bug == lateFinalizer {
		w.Status.ExternalID = "gone"
		if err := r.Status().Update(ctx, w); err != nil {
			return err
		}
		controllerutil.RemoveFinalizer(w, keeperFinalizer)
	}
	return r.Update(ctx, w)
}

// sayInUse says in a condition that a Widget can't go.
func (r *keeper) sayInUse(ctx context.Context, w *Widget) error {
	if r.bug == silentlyInUse {
		return nil
	}
	before := w.DeepCopy().Status
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "InUse", Message: "it is deleted when it is no longer in use", ObservedGeneration: w.Generation,
	})
	return saveStatus(ctx, r, w, before)
}

// report says in the status how the work went.
func (r *keeper) report(w *Widget, wait string, err error) {
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "everything is there", ObservedGeneration: w.Generation}
	switch {
	case err != nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Failed", reason(err)
	case wait != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NameTaken", wait
	}
	suspended := metav1.Condition{Type: "Suspended", Status: metav1.ConditionFalse, Reason: "Runs", ObservedGeneration: w.Generation}
	if w.Spec.Size == 0 {
		suspended.Status, suspended.Reason = metav1.ConditionTrue, "NoSize"
	}
	for _, c := range []metav1.Condition{ready, suspended} {
		was := meta.FindStatusCondition(w.Status.Conditions, c.Type)
		if r.bug == keepsTransition && was != nil {
			c.LastTransitionTime = was.LastTransitionTime
			*was = c
			continue
		}
		meta.SetStatusCondition(&w.Status.Conditions, c)
	}
	switch {
	case r.bug != statusFromHistory:
		w.Status.ExternalID = "size-" + strconv.Itoa(int(w.Spec.Size))
	case w.Generation == 1:
		w.Status.ExternalID = "size"
	}
	w.Status.ObservedGeneration = w.Generation
}

// keep makes the children what they should be. wait says why it can't continue.
func (r *keeper) keep(ctx context.Context, w *Widget) (wait string, err error) {
	volume := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-data"}, Spec: smallVolume()}
	if wait, err = r.create(ctx, w, volume, r.bug != leavesVolume); err != nil || wait != "" {
		return wait, err
	}
	data := map[string]string{"size": strconv.Itoa(int(w.Spec.Size))}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-config"}, Data: data}
	if r.bug == refusedForEver {
		config.Labels = map[string]string{"of": "not a label"}
	}
	if wait, err = r.create(ctx, w, config, true); err != nil || wait != "" {
		return wait, err
	}
	if r.bug == appliesAlways {
		return "", r.Apply(ctx, applycorev1.ConfigMap(config.Name, config.Namespace).WithData(data), client.FieldOwner("keeper"), client.ForceOwnership)
	}
	if maps.Equal(config.Data, data) {
		return "", nil
	}
	config.Data = data
	return "", r.Update(ctx, config)
}

// create creates a child unless it is there, and makes obj what is there.
func (r *keeper) create(ctx context.Context, w *Widget, obj client.Object, owned bool) (wait string, err error) {
	wanted := obj.DeepCopyObject().(client.Object)
	err = r.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	switch {
	case apierrors.IsNotFound(err):
		if owned {
			if err := ctrl.SetControllerReference(w, wanted, r.Scheme()); err != nil {
				return "", err
			}
		}
		return "", r.Create(ctx, wanted)
	case err == nil && owned && !metav1.IsControlledBy(obj, w):
		return "the name " + obj.GetName() + " is taken", nil
	}
	return "", err
}
