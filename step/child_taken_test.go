// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
	"github.com/ctrlkit/ctrlkit/step/steptest"
)

// A preempting client has another one do something before each Apply.
type preempting struct {
	client.Client
	before func(ctx context.Context) error
}

func (p *preempting) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := p.before(ctx); err != nil {
		return err
	}
	return p.Client.Apply(ctx, obj, opts...)
}

// An object that another client creates at the same instant is not taken over, also if there is no
// field that both set.
func TestEnsureChildDoesNotTakeOverWhatAppears(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(thingVersion, &Thing{}, &ThingList{})
	metav1.AddToGroupVersion(scheme, thingVersion)
	must(t, clientgoscheme.AddToScheme(scheme))
	thing := newThing()
	thing.UID = ""
	req := steptest.NewRequest(t, thing, steptest.WithScheme(scheme))
	server, created := req.Client, false
	req.Client = &preempting{server, func(ctx context.Context) error {
		if created {
			return nil
		}
		created = true
		return server.Create(ctx, configMap("child", map[string]string{"theirs": "1"}))
	}}
	ensure := func() error {
		return step.EnsureChild(t.Context(), req, configMap("child", map[string]string{"ours": "1"}))
	}
	if err := ensure(); !apierrors.IsConflict(err) || failure.Classify(err).Class != failure.ClassConflict {
		t.Errorf("got %v, want a conflict", err)
	}
	same(t, "Classify.Reason", step.ReasonOwnedByAnother, failure.Classify(ensure()).Reason)
	got := &corev1.ConfigMap{}
	must(t, server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, got))
	none(t, "OwnerReferences", got.OwnerReferences)
	same(t, "Data", "", got.Data["ours"])

	must(t, server.Delete(t.Context(), got))
	if err := errors.Join(ensure(), ensure()); err != nil {
		t.Errorf("the name is free, and got %v", err)
	}
}
