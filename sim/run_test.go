package sim

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// copier keeps a Secret with the data of each ConfigMap that is labelled so.
type copier struct{ client.Client }

func (c copier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, req.NamespacedName, cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cm.Labels["copy"] != "yes" {
		return ctrl.Result{}, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-copy", Namespace: cm.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, secret, func() error {
		secret.Data = map[string][]byte{}
		for k, v := range cm.Data {
			secret.Data[k] = []byte(v)
		}
		return controllerutil.SetControllerReference(cm, secret, c.Scheme())
	})
	return ctrl.Result{}, err
}

func copyWorkload() *Workload {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default", Labels: map[string]string{"copy": "yes"}}, Data: map[string]string{"a": "1"}}
	return &Workload{
		Operator: Manager(func(mgr ctrl.Manager, p *Process) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(copier{mgr.GetClient()})
		}),
		Script: func(w *World) {
			w.Create(cm)
			w.Settle()
			Update(w, cm, func(cm *corev1.ConfigMap) { cm.Data["a"] = "2" })
			w.Settle()
			w.Delete(cm)
			w.Settle()
		},
	}
}

func TestCopier(t *testing.T) {
	Run(t, *copyWorkload(), Pairs(50))
}
