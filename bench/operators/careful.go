// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/bench/widget"
)

// careful is written by hand to save requests: it compares before each write, field by field where
// the API server has defaults.
type careful struct {
	client.Client
	each func(keep ...func() error) error
}

// NewCareful returns the careful operator.
func NewCareful(c client.Client) reconcile.Reconciler { return &careful{Client: c, each: inTurn} }

// inTurn calls one function after the other, until one fails.
func inTurn(keep ...func() error) error {
	for _, f := range keep {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// atOnce calls all functions at the same time.
func atOnce(keep ...func() error) error {
	var group errgroup.Group
	for _, f := range keep {
		group.Go(f)
	}
	return group.Wait()
}

// Reconcile brings a Widget closer to its desired state, and writes only differences.
func (c *careful) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var w widget.Widget
	if err := c.Get(ctx, request.NamespacedName, &w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopyObject().(*widget.Widget) //nolint:errcheck // a copy has the type
	if !w.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&w, widget.Finalizer) {
			return reconcile.Result{}, c.Patch(ctx, &w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		return reconcile.Result{}, nil
	}
	if controllerutil.AddFinalizer(&w, widget.Finalizer) {
		if err := c.Patch(ctx, &w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	err := c.each(
		func() error { return c.keepConfigMap(ctx, &w, ConfigMap(&w)) },
		func() error { return c.keepSecret(ctx, &w, Secret(&w)) },
		func() error { return c.keepService(ctx, &w, Service(&w)) },
	)
	if err != nil {
		return reconcile.Result{}, err
	}
	SetReady(&w)
	if equality.Semantic.DeepEqual(before.Status, w.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, c.Status().Update(ctx, &w)
}

func (c *careful) keepConfigMap(ctx context.Context, w *widget.Widget, want *corev1.ConfigMap) error {
	var got corev1.ConfigMap
	return c.keep(ctx, w, want, &got, func() bool {
		if maps.Equal(got.Data, want.Data) {
			return false
		}
		got.Data = want.Data
		return true
	})
}

func (c *careful) keepSecret(ctx context.Context, w *widget.Widget, want *corev1.Secret) error {
	var got corev1.Secret
	return c.keep(ctx, w, want, &got, func() bool {
		if equality.Semantic.DeepEqual(got.Data, want.Data) {
			return false
		}
		got.Data = want.Data
		return true
	})
}

func (c *careful) keepService(ctx context.Context, w *widget.Widget, want *corev1.Service) error {
	var got corev1.Service
	return c.keep(ctx, w, want, &got, func() bool {
		ports := withDefaults(want.Spec.Ports)
		if maps.Equal(got.Spec.Selector, want.Spec.Selector) && equality.Semantic.DeepEqual(got.Spec.Ports, ports) {
			return false
		}
		got.Spec.Selector, got.Spec.Ports = want.Spec.Selector, ports
		return true
	})
}

// withDefaults returns ports with the defaults of the API server.
func withDefaults(ports []corev1.ServicePort) []corev1.ServicePort {
	var all []corev1.ServicePort
	for _, p := range ports {
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
		all = append(all, p)
	}
	return all
}

// keep creates a child, or updates it if its labels, its owner or its content differ. Set sets the
// content in got, and reports whether that changed it.
func (c *careful) keep(ctx context.Context, w *widget.Widget, want, got client.Object, set func() (changed bool)) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(want), got); apierrors.IsNotFound(err) {
		if err := controllerutil.SetControllerReference(w, want, c.Scheme()); err != nil {
			return err
		}
		return c.Create(ctx, want)
	} else if err != nil {
		return err
	}
	changed := set()
	if !metav1.IsControlledBy(got, w) {
		if err := controllerutil.SetControllerReference(w, got, c.Scheme()); err != nil {
			return err
		}
		changed = true
	}
	for key, value := range want.GetLabels() {
		if got.GetLabels()[key] != value {
			got.SetLabels(want.GetLabels())
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return c.Update(ctx, got)
}
