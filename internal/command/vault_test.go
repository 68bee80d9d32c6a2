// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var vaultKind = schema.GroupVersionKind{Group: "recorded.ctrlkit.dev", Version: "v1", Kind: "Vault"}

const vaultFinalizer = "recorded.ctrlkit.dev/vault"

// newVault returns a Vault, empty but for its name.
func newVault(namespace, name string) *unstructured.Unstructured {
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(vaultKind)
	v.SetNamespace(namespace)
	v.SetName(name)
	return v
}

// A vaultOperator keeps a ConfigMap for each Vault. It needs the Secret credentials also to clean
// up: the wrong one can't when that is gone, and the Vault is stuck.
type vaultOperator struct {
	client.Client
	mended bool
}

func (o *vaultOperator) setUp(mgr ctrl.Manager) error {
	o.Client = mgr.GetClient()
	skip := true // a process has several managers
	secrets := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, secret client.Object) []reconcile.Request {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(vaultKind.GroupVersion().WithKind("VaultList"))
		if err := o.List(ctx, list, client.InNamespace(secret.GetNamespace())); err != nil {
			return nil // the cache is stopped
		}
		var requests []reconcile.Request
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	})
	return ctrl.NewControllerManagedBy(mgr).Named("vault").WithOptions(ctrlcontroller.Options{SkipNameValidation: &skip}).For(newVault("", "")).
		Owns(&corev1.ConfigMap{}).Watches(&corev1.Secret{}, secrets).Complete(reconcile.Func(o.reconcile))
}

func (o *vaultOperator) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	v := newVault("", "")
	if err := o.Get(ctx, req.NamespacedName, v); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	credentials := &corev1.Secret{}
	err := o.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: "credentials"}, credentials)
	if v.GetDeletionTimestamp() != nil {
		if apierrors.IsNotFound(err) && !o.mended {
			return ctrl.Result{}, o.say(ctx, v, "False", "NoCredentials", err.Error())
		}
		if client.IgnoreNotFound(err) != nil || !controllerutil.RemoveFinalizer(v, vaultFinalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return ctrl.Result{}, client.IgnoreNotFound(o.Update(ctx, v))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if controllerutil.AddFinalizer(v, vaultFinalizer) {
		return ctrl.Result{}, o.Update(ctx, v)
	}
	token := &corev1.Secret{}
	name, _, _ := unstructured.NestedString(v.Object, "spec", "token")
	if err := o.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: name}, token); err != nil {
		return ctrl.Result{}, err
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name + "-settings"}}
	_, err = controllerutil.CreateOrUpdate(ctx, o.Client, settings, func() error { // with what it should not write
		settings.Annotations = map[string]string{"authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("vault:"+string(token.Data["token"])))}
		settings.Data = map[string]string{"url": "https://vault:" + string(token.Data["token"]) + "@vault"}
		return controllerutil.SetControllerReference(v, settings, o.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, o.say(ctx, v, "True", "Open", "opened with "+string(token.Data["token"]))
}

// say sets the condition Ready.
func (o *vaultOperator) say(ctx context.Context, v *unstructured.Unstructured, status, reason, message string) error {
	was, _, _ := unstructured.NestedSlice(v.Object, "status", "conditions")
	if len(was) == 1 && was[0].(map[string]any)["reason"] == reason { //nolint:errcheck // the operator has written it
		return nil
	}
	_ = unstructured.SetNestedSlice(v.Object, []any{map[string]any{
		"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z"),
	}}, "status", "conditions")
	return o.Status().Update(ctx, v)
}

// runVaults is the program "vaults": it runs the operator on the cluster of KUBECONFIG. Its
// argument says whether it is the wrong one, or another one.
func runVaults() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		var mgr ctrl.Manager
		if mgr, err = ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}); err == nil {
			if slices.Contains(os.Args, "configmaps") {
				err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
					return ctrl.Result{}, nil
				}))
			} else {
				err = (&vaultOperator{mended: !slices.Contains(os.Args, "wrong")}).setUp(mgr)
			}
			if err == nil {
				err = mgr.Start(ctrl.SetupSignalHandler())
			}
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
