// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/state"
)

// Setup registers a controller for each of the kinds with a manager whose options [Cache] was
// given.
func Setup(ctx context.Context, mgr ctrl.Manager) error {
	c, log := mgr.GetClient(), mgr.GetLogger()
	for _, controller := range []struct {
		index      func(context.Context, client.FieldIndexer) error
		builder    *ctrl.Builder
		apiVersion string
		kind       string
		action     func(*unstructured.Unstructured) ctrlkit.Action
	}{
		{IndexRoutes, WatchRoutes(ctrl.NewControllerManagedBy(mgr), c), "gateway.networking.k8s.io/v1", "HTTPRoute", func(obj *unstructured.Unstructured) ctrlkit.Action {
			return NewRoutes(NewRoutesState(c, obj), &actions{c, obj}, log).ReportParents()
		}},
		{IndexCertificates, WatchCertificates(ctrl.NewControllerManagedBy(mgr), c), "cert-manager.io/v1", "Certificate", func(obj *unstructured.Unstructured) ctrlkit.Action {
			return NewCertificates(NewCertificatesState(c, obj), &actions{c, obj}, log).ReportIssuer()
		}},
		{IndexMonitors, WatchMonitors(ctrl.NewControllerManagedBy(mgr), c), "monitoring.coreos.com/v1", "ServiceMonitor", func(obj *unstructured.Unstructured) ctrlkit.Action {
			return NewMonitors(NewMonitorsState(c, obj), &actions{c, obj}, log).ReportReaders()
		}},
		{IndexDatabases, WatchDatabases(ctrl.NewControllerManagedBy(mgr), c), "databases.example.com/v1", "Database", func(obj *unstructured.Unstructured) ctrlkit.Action {
			return NewDatabases(NewDatabasesState(c, obj), &actions{c, obj}, log).ReportBackup()
		}},
	} {
		if err := controller.index(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		if err := controller.builder.Complete(reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
			obj := state.NewObject(controller.apiVersion, controller.kind)
			if err := c.Get(ctx, request.NamespacedName, obj); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return ctrlkit.IgnoreExit(controller.action(obj).Run(ctx))
		})); err != nil {
			return err
		}
	}
	return nil
}

// Cache makes the client read unstructured objects from the cache.
func Cache(options *ctrl.Options) error { return CacheRoutes(options) }

// actions are those of one reconcile of any of the kinds.
type actions struct {
	client client.Client
	target *unstructured.Unstructured
}

var (
	_ RoutesImpl       = (*actions)(nil)
	_ CertificatesImpl = (*actions)(nil)
	_ MonitorsImpl     = (*actions)(nil)
	_ DatabasesImpl    = (*actions)(nil)
)

// ReportParents reports the Gateways and Services that an HTTPRoute names.
func (a *actions) ReportParents(ctx context.Context, _ logr.Logger, gateways []RoutesGateway, backends []corev1.Service) (ctrl.Result, error) {
	var found found
	for i := range gateways {
		found.add("Gateway", &gateways[i])
	}
	for i := range backends {
		found.add("Service", &backends[i])
	}
	return a.report(ctx, found)
}

// ReportIssuer reports who issues a Certificate, with which account, and where it is.
func (a *actions) ReportIssuer(ctx context.Context, _ logr.Logger, issuer *CertificatesIssuer, clusterIssuer *CertificatesClusterIssuer, account, secret *corev1.Secret) (ctrl.Result, error) {
	var found found
	if issuer != nil {
		found.add("Issuer", issuer)
	}
	if clusterIssuer != nil {
		found.add("ClusterIssuer", clusterIssuer)
	}
	for _, secret := range []*corev1.Secret{account, secret} {
		if secret != nil {
			found.add("Secret", secret)
		}
	}
	return a.report(ctx, found)
}

// ReportReaders reports what reads a ServiceMonitor, and what it names.
func (a *actions) ReportReaders(ctx context.Context, _ logr.Logger, prometheuses []MonitorsPrometheus, service *corev1.Service, tokens []corev1.Secret) (ctrl.Result, error) {
	var found found
	for i := range prometheuses {
		found.add("Prometheus", &prometheuses[i])
	}
	if service != nil {
		found.add("Service", service)
	}
	for i := range tokens {
		found.add("Secret", &tokens[i])
	}
	return a.report(ctx, found)
}

// ReportBackup reports where a Database is backed up, and its instances.
func (a *actions) ReportBackup(ctx context.Context, _ logr.Logger, bucket *DatabasesBucket, credentials *corev1.Secret, instances []corev1.Pod, services []corev1.Service) (ctrl.Result, error) {
	var found found
	if bucket != nil {
		found.add("Bucket", bucket)
	}
	if credentials != nil {
		found.add("Secret", credentials)
	}
	for i := range instances {
		found.add("Pod", &instances[i])
	}
	for i := range services {
		found.add("Service", &services[i])
	}
	return a.report(ctx, found)
}

// found are the objects of a report, as a status has them.
type found []any

func (f *found) add(kind string, obj client.Object) {
	*f = append(*f, fmt.Sprintf("%s %s/%s", kind, obj.GetNamespace(), obj.GetName()))
}

// report writes the status of the target, unless it is the same.
func (a *actions) report(ctx context.Context, found found) (ctrl.Result, error) {
	have, _, err := unstructured.NestedSlice(a.target.Object, "status", "found")
	if err != nil || slices.Equal(have, found) {
		return ctrl.Result{}, err
	}
	before := a.target.DeepCopy()
	if err := unstructured.SetNestedSlice(a.target.Object, found, "status", "found"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, a.client.Status().Patch(ctx, a.target, client.MergeFrom(before))
}
