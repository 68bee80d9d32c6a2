// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package defined

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/state"
)

const (
	apiVersion = "traffic.example.com/v1"
	routeKind  = "Route"
)

// Reconciler reconciles Routes.
type Reconciler struct {
	client.Client
	Logger logr.Logger
}

// Setup registers the reconciler with a manager whose options CacheRouting was given.
func (r *Reconciler) Setup(ctx context.Context, mgr ctrl.Manager) error {
	if err := IndexRouting(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	return WatchRouting(ctrl.NewControllerManagedBy(mgr), mgr.GetClient()).Complete(r)
}

// Reconcile runs the actions of one Route.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	route := state.NewObject(apiVersion, routeKind)
	if err := r.Get(ctx, request.NamespacedName, route); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if route.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	mgr := NewRouting(NewRoutingState(r.Client, route), &actions{r.Client, route}, r.Logger)
	return ctrlkit.IgnoreExit(ctrlkit.Join(mgr.KeepProbe(), mgr.Report()).Run(ctx))
}

// actions are those of one reconcile.
type actions struct {
	client client.Client
	target *unstructured.Unstructured
}

var _ RoutingImpl = (*actions)(nil)

// KeepProbe makes the Probe, whose URL is that of the Service, or empty without a Service.
func (a *actions) KeepProbe(ctx context.Context, _ logr.Logger, service, fallback *corev1.Service, probes []RoutingProbe, settings *corev1.ConfigMap) (ctrl.Result, error) {
	scheme, url := "http", ""
	if settings != nil && settings.Data["scheme"] != "" {
		scheme = settings.Data["scheme"]
	}
	if service == nil {
		service = fallback
	}
	if service != nil {
		port, _ := (&RoutingRoute{*a.target}).SpecServicePort()
		url = fmt.Sprintf("%s://%s:%d", scheme, service.Name, port)
	}
	if len(probes) == 0 {
		return ctrl.Result{}, a.createProbe(ctx, url)
	}
	if have := state.Field(&probes[0].Unstructured, "spec", "url"); have != nil && *have == url {
		return ctrlkit.NoRequeue()
	}
	probes[0].Object["spec"] = map[string]any{"url": url}
	return ctrl.Result{}, a.client.Update(ctx, &probes[0])
}

func (a *actions) createProbe(ctx context.Context, url string) error {
	probe := state.NewObject(apiVersion, "Probe")
	probe.SetNamespace(a.target.GetNamespace())
	probe.SetName(a.target.GetName())
	probe.SetLabels(map[string]string{"route": a.target.GetName()})
	probe.Object["spec"] = map[string]any{"url": url}
	if err := controllerutil.SetControllerReference(a.target, probe, a.client.Scheme()); err != nil {
		return err
	}
	err := a.client.Create(ctx, probe)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is a Probe %s that the Route does not control: %w", probe.GetName(), err)
	}
	return err
}

// Report writes the status.
func (a *actions) Report(ctx context.Context, _ logr.Logger, zone *RoutingZone, sharing []RoutingRoute, ca *corev1.ConfigMap, peers []RoutingRoute,
	backends []corev1.Service, hosts []corev1.ConfigMap,
) (ctrl.Result, error) {
	status := map[string]any{"sharing": int64(len(sharing)), "peers": int64(len(peers)), "found": int64(len(backends) + len(hosts))}
	if ca != nil {
		status["ca"] = ca.Data["ca.crt"]
	}
	if zone != nil {
		if region := state.Field(&zone.Unstructured, "spec", "region"); region != nil {
			status["region"] = *region
		}
		if secret, set := zone.SpecSecret(); set {
			status["secret"] = secret
		}
	}
	if equality.Semantic.DeepEqual(a.target.Object["status"], status) {
		return ctrlkit.NoRequeue()
	}
	changed := a.target.DeepCopy()
	changed.Object["status"] = status
	return ctrl.Result{}, a.client.Status().Patch(ctx, changed, client.MergeFrom(a.target))
}
