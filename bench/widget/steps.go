// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

// Finalizer is the finalizer of both operators.
const Finalizer = "bench.ctrlkit.dev/widget"

// ChildrenReady is the condition of the children.
const ChildrenReady = "ChildrenReady"

// NewEngine returns the operator made of steps. options.APIReader and options.Recorder may be nil.
func NewEngine(options step.Options[*Widget], external *External) (*step.Engine[*Widget], error) {
	options.Name, options.Finalizer = "widget", Finalizer
	return step.New(options, keepExternal{external}, keepChildren{})
}

// keepExternal maintains the external resource.
type keepExternal struct{ external *External }

var _ step.Cleaner[*Widget] = keepExternal{}

func (keepExternal) Name() string { return "KeepExternal" }

func (k keepExternal) Do(_ context.Context, req *step.Request[*Widget]) (ctrl.Result, error) {
	k.external.Keep(req.Object.UID)
	return ctrlkit.NoRequeue()
}

func (k keepExternal) Cleanup(_ context.Context, req *step.Request[*Widget]) (ctrl.Result, error) {
	k.external.Remove(req.Object.UID)
	return ctrlkit.NoRequeue()
}

// keepChildren maintains the three ConfigMaps. The garbage collector deletes them.
type keepChildren struct{}

var _ step.ConditionDeclarer[*Widget] = keepChildren{}

func (keepChildren) Name() string { return "KeepChildren" }

func (keepChildren) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: ChildrenReady}}
}

func (keepChildren) Do(ctx context.Context, req *step.Request[*Widget]) (ctrl.Result, error) {
	var errs []error
	for _, want := range children(req.Object) {
		errs = append(errs, keep(ctx, req, want))
	}
	if err := errors.Join(errs...); err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	req.Object.Status.Children = 3
	req.Conditions.MarkHealthy(ChildrenReady, "AllThere", "")
	return ctrlkit.NoRequeue()
}

// keep creates or updates a child. It writes nothing if the child is up to date.
func keep(ctx context.Context, req *step.Request[*Widget], want *corev1.ConfigMap) error {
	var got corev1.ConfigMap
	err := req.Client.Get(ctx, client.ObjectKeyFromObject(want), &got)
	if apierrors.IsNotFound(err) {
		if err := own(req.Object, want, req.Client.Scheme()); err != nil {
			return err
		}
		if err := req.Client.Create(ctx, want); err != nil {
			return fmt.Errorf("creating ConfigMap %q: %w", want.Name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", want.Name, err)
	}
	if equality.Semantic.DeepEqual(got.Data, want.Data) {
		return nil
	}
	got.Data = want.Data
	if err := req.Client.Update(ctx, &got); err != nil {
		return fmt.Errorf("updating ConfigMap %q: %w", want.Name, err)
	}
	return nil
}

// children returns the desired ConfigMaps of a Widget, without their owner.
func children(w *Widget) []*corev1.ConfigMap {
	var all []*corev1.ConfigMap
	for _, c := range []struct{ name, text string }{{"first", w.Spec.First}, {"second", w.Spec.Second}, {"third", w.Spec.Third}} {
		all = append(all, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + c.name, Labels: map[string]string{"widget": w.Name}},
			Data:       map[string]string{"text": c.text},
		})
	}
	return all
}

func own(w *Widget, child *corev1.ConfigMap, scheme *runtime.Scheme) error {
	if err := controllerutil.SetControllerReference(w, child, scheme); err != nil {
		return fmt.Errorf("making the Widget the owner of ConfigMap %q: %w", child.Name, err)
	}
	return nil
}
