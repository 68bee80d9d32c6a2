// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

// Packages that do not know each other register handlers for the same kind.
func Example() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{NewCache: handlers.NewCache})
	if err != nil {
		panic(err)
	}
	registry, err := handlers.New(mgr, handlers.Options{Name: "project"})
	if err != nil {
		panic(err)
	}
	labels := labels{registry.Client()}
	if _, err := registry.Register(labels.handlers()...); err != nil {
		panic(err)
	}
	if _, err := registry.Register(quotas()); err != nil {
		panic(err)
	}
	if err := mgr.AddReadyzCheck("kinds", registry.Ready); err != nil {
		panic(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

// labels are the handlers of one package.
type labels struct{ client client.Client }

func (l labels) handlers() []handlers.Entry {
	return []handlers.Entry{
		handlers.Handler[*corev1.Namespace]{
			Name:     "labels",
			OnChange: l.inherit,
			Selects:  func(ns *corev1.Namespace) bool { return ns.Labels["project"] != "" },
			Related:  []step.Watch{step.WatchMapped(&Project{}, l.namespacesOf)},
		},
	}
}

// inherit copies the labels of a project to a namespace.
func (l labels) inherit(ctx context.Context, ns *corev1.Namespace) error {
	project := &Project{}
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: "projects", Name: ns.Labels["project"]}, project); err != nil {
		return client.IgnoreNotFound(err)
	}
	if ns.Labels["team"] == project.Labels["team"] {
		return nil
	}
	before := ns.DeepCopy() // ns is a copy for this handler
	ns.Labels["team"] = project.Labels["team"]
	return l.client.Patch(ctx, ns, client.MergeFrom(before))
}

func (l labels) namespacesOf(project *Project) []client.ObjectKey {
	return []client.ObjectKey{{Name: project.Name}}
}

// quotas returns a handler that keeps a ResourceQuota for each project.
func quotas() handlers.Entry {
	return handlers.Generate("quota", func(_ context.Context, req *step.Request[*Project], want *apply.Set) error {
		want.Add(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Namespace, Name: req.Object.Name}})
		return nil
	}, apply.Owns(&corev1.ResourceQuota{}))
}

// A handler of a kind that is known only at run time. Its definition may be installed later.
func ExampleHandler_unstructured() {
	var registry *handlers.Registry // of the manager
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Plan"}
	registration, err := registry.Register(handlers.Handler[*unstructured.Unstructured]{
		Name: "plan",
		Kind: kind,
		OnChange: func(_ context.Context, plan *unstructured.Unstructured) error {
			return ctrlkit.RequeueWithin(time.Hour)
		},
	})
	if err != nil {
		panic(err)
	}
	// Later on, when the feature is switched off:
	if err := registration.Stop(context.Background()); err != nil {
		panic(err)
	}
}

// OnRemove is called before an object is gone, and puts a finalizer on the objects that it selects.
func ExampleHandler_onRemove() {
	var tenants interface {
		Ensure(ctx context.Context, name string) error
		Delete(ctx context.Context, name string) error
	}
	_ = handlers.Handler[*Project]{
		Name:    "tenant",
		Selects: func(p *Project) bool { return p.Spec.Size > 0 },
		OnChange: func(ctx context.Context, p *Project) error {
			return tenants.Ensure(ctx, p.Name)
		},
		OnRemove: func(ctx context.Context, p *Project) error {
			return tenants.Delete(ctx, p.Name)
		},
	}
}

// A status handler keeps one condition, which follows the error of its function.
func ExampleStatus() {
	var registry *handlers.Registry // of the manager
	_ = handlers.Status("size", "Sized", func(ctx context.Context, p *Project) error {
		namespaces, err := handlers.KindOf[*corev1.Namespace](registry).List(ctx, client.MatchingLabels{"project": p.Name})
		if err != nil {
			return err
		}
		p.Status.Size = int64(len(namespaces))
		return nil
	}, step.WatchMapped(&corev1.Namespace{}, func(ns *corev1.Namespace) []client.ObjectKey {
		return []client.ObjectKey{{Namespace: "projects", Name: ns.Labels["project"]}}
	}))
}
