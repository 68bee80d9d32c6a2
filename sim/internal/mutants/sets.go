// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// The mistakes of an operator that keeps a set of objects for each Widget: an immutable ConfigMap
// for each Secret of the namespace, and a ResourceQuota.
const (
	collidesIdentities Bug = "set-identity-collision"
	takesSetOver       Bug = "set-silent-takeover"
	failedListIsEmpty  Bug = "set-failed-list-is-empty"
	comparesQuantities Bug = "set-compares-quantities"
	updatesImmutable   Bug = "set-updates-immutable"
)

func setMutants() []Mutant {
	m := mutantsOf(setWorkload)
	return []Mutant{
		m(collidesIdentities, "the label of a set is the name and the namespace of its owner without a separator", "wrangler's apply: bprod/we deleted the children of prod/web", oracle.BecomesIdle, oracle.BoundedRequests, oracle.SilentWhenIdle),
		m(takesSetOver, "an object is applied by force, and its owner rewritten", "wrangler's apply: silent takeover", oracle.ForeignUntouched),
		m(failedListIsEmpty, "a list that fails is taken for an empty one, and everything is pruned", "sets that are pruned when a request fails", oracle.SameWork),
		m(comparesQuantities, "1000m is compared with 1 as a text", "hot loops by quantities and the order of lists", oracle.NoNoopWrites, oracle.BoundedRequests, oracle.BecomesIdle),
		m(updatesImmutable, "a change that can't be made is tried for ever", "operators that retry the update of a Job for ever", oracle.EndsWell),
	}
}

// setWorkload is the life of two Widgets whose names and namespaces are the same when joined. The
// right operator uses package apply.
func setWorkload(bug Bug) sim.Workload {
	w := sim.Workload{Name: "sets", Scheme: scheme, CRDs: definitions}
	var widgets []*Widget
	for namespace, name := range map[string]string{"prod": "web", "bprod": "we"} {
		widget, secret := newWidget(), newSecret()
		widget.Namespace, widget.Name, secret.Namespace = namespace, name, namespace
		w.Objects = append(w.Objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, secret)
		widgets = append(widgets, widget)
	}
	if widgets[0].Name != "web" { // maps have no order
		widgets[0], widgets[1] = widgets[1], widgets[0]
		w.Objects = append(w.Objects[2:], w.Objects[:2]...)
	}
	w.Operator = asManager(func(mgr ctrl.Manager, _ *sim.Process) error {
		if bug == Right {
			return completeSets(mgr)
		}
		r := &sets{Client: mgr.GetClient(), live: mgr.GetAPIReader(), bug: bug}
		return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}).Owns(&corev1.ResourceQuota{}).
			Watches(&corev1.Secret{}, neighbors(mgr)).Complete(r)
	})
	w.Script = func(w *sim.World) {
		for _, widget := range widgets {
			w.Create(widget)
		}
		w.Settle()
		sim.Update(w, widgets[0], func(x *Widget) { x.Spec.Size = 2 })
		w.Settle()
		w.Delete(widgets[0])
		w.Settle()
	}
	return w
}

// completeSets makes the right operator.
func completeSets(mgr ctrl.Manager) error {
	engine, err := newSet(mgr, "sets", func(ctx context.Context, req *step.Request[*Widget], want *apply.Set) error {
		objects, err := setOf(ctx, req.APIReader, req.Object)
		if err != nil {
			return err
		}
		for _, obj := range objects {
			want.Add(obj, apply.Replace, apply.NoWait)
		}
		return nil
	}, apply.Owns(&corev1.ConfigMap{}, &corev1.ResourceQuota{}))
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Watches(&corev1.Secret{}, engine.WrapHandler(neighbors(mgr))))
}

// neighbors requests the Widgets in the namespace of an object.
func neighbors(mgr ctrl.Manager) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return requestsOf(ctx, mgr.GetClient(), obj.GetNamespace(), func(*Widget) bool { return true })
	})
}

// setOf returns what should exist for a Widget.
func setOf(ctx context.Context, r client.Reader, w *Widget) ([]client.Object, error) {
	objects := []client.Object{&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.cpu": resource.MustParse("1000m")}},
	}}
	secrets := &corev1.SecretList{}
	if err := r.List(ctx, secrets, client.InNamespace(w.Namespace)); err != nil {
		return objects, err
	}
	immutable := true
	for i := range secrets.Items {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + secrets.Items[i].Name},
			Immutable:  &immutable, Data: map[string]string{"size": strconv.Itoa(int(w.Spec.Size))},
		})
	}
	return objects, nil
}

// sets is an operator that keeps sets without package apply.
type sets struct {
	client.Client
	live client.Reader
	bug  Bug
}

func (r *sets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil || !w.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	objects, err := setOf(ctx, r.live, w)
	if err != nil && r.bug != failedListIsEmpty {
		return ctrl.Result{}, err
	}
	label := map[string]string{"set": w.Namespace + "." + w.Name}
	if r.bug == collidesIdentities {
		label["set"] = w.Name + w.Namespace
	}
	wanted := map[client.ObjectKey]bool{}
	for _, obj := range objects {
		obj.SetLabels(label)
		if err := ctrl.SetControllerReference(w, obj, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.keep(ctx, w, obj); err != nil {
			return ctrl.Result{}, err
		}
		wanted[client.ObjectKeyFromObject(obj)] = true
	}
	list := &corev1.ConfigMapList{}
	if err := r.List(ctx, list, client.MatchingLabels(label)); err != nil {
		return ctrl.Result{}, err
	}
	for i := range list.Items {
		if !wanted[client.ObjectKeyFromObject(&list.Items[i])] {
			if err := r.Delete(ctx, &list.Items[i]); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
		}
	}
	return ctrl.Result{}, nil
}

// keep makes an object as it should be.
func (r *sets) keep(ctx context.Context, w *Widget, wanted client.Object) error {
	current := wanted.DeepCopyObject().(client.Object)
	err := r.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	switch {
	case apierrors.IsNotFound(err):
		return r.Create(ctx, wanted)
	case err != nil:
		return err
	case !metav1.IsControlledBy(current, w) && r.bug != takesSetOver:
		return nil
	}
	if metav1.IsControlledBy(current, w) && r.isSame(wanted, current) {
		return nil
	}
	if cm, ok := current.(*corev1.ConfigMap); ok && r.bug != updatesImmutable && cm.Data["size"] != strconv.Itoa(int(w.Spec.Size)) {
		return client.IgnoreNotFound(r.Delete(ctx, current)) // the watch requests the rest
	}
	wanted.SetResourceVersion(current.GetResourceVersion())
	return r.Update(ctx, wanted)
}

func (r *sets) isSame(a, b client.Object) bool {
	switch a := a.(type) {
	case *corev1.ConfigMap:
		return maps.Equal(a.Data, b.(*corev1.ConfigMap).Data)
	case *corev1.ResourceQuota:
		x, y := a.Spec.Hard["requests.cpu"], b.(*corev1.ResourceQuota).Spec.Hard["requests.cpu"]
		if r.bug == comparesQuantities {
			return y.String() == "1000m"
		}
		return x.Cmp(y) == 0
	}
	return false
}
