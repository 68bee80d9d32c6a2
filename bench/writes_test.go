// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// BenchmarkWrites measures what an engine adds to a write: reconciles that send requests to an API
// server that takes no time. Each number is for all of the reconcile.
func BenchmarkWrites(b *testing.B) {
	writes := []struct {
		name string
		do   func(ctx context.Context, req *step.Request[*widget.Widget], n int) error
	}{
		{"nothing", func(context.Context, *step.Request[*widget.Widget], int) error { return nil }},
		{"status", func(_ context.Context, req *step.Request[*widget.Widget], n int) error {
			req.Object.Status.Children = int64(n)
			return nil
		}},
		{"create", func(ctx context.Context, req *step.Request[*widget.Widget], n int) error {
			obj := child(n)
			obj.Name += strconv.Itoa(n)
			return req.Client.Create(ctx, obj)
		}},
		{"update", func(ctx context.Context, req *step.Request[*widget.Widget], n int) error {
			return req.Client.Update(ctx, child(n))
		}},
		{"patch", func(ctx context.Context, req *step.Request[*widget.Widget], n int) error {
			return req.Client.Patch(ctx, child(n), client.MergeFrom(child(n-1)))
		}},
		{"apply", func(ctx context.Context, req *step.Request[*widget.Widget], n int) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child(n))
			if err != nil {
				return err
			}
			return req.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content}))
		}},
	}
	for _, observed := range []bool{false, true} {
		for _, w := range writes {
			name := w.name
			if observed {
				name += ", observed"
			}
			b.Run(name, func(b *testing.B) { measureWrite(b, observed, w.do) })
		}
	}
}

func measureWrite(b *testing.B, observed bool, do func(ctx context.Context, req *step.Request[*widget.Widget], n int) error) {
	b.Helper()
	n := 0
	options := step.Options[*widget.Widget]{Name: "widget", Client: instant(b)}
	if observed {
		options.Observers = []journal.Observer{journal.NewRing(journal.RingOptions{})}
	}
	engine, err := step.New(options, step.Step[*widget.Widget]{Name: "Write", Do: func(ctx context.Context, req *step.Request[*widget.Widget]) error {
		n++
		return do(ctx, req, n)
	}})
	must(b, err)
	ctx := log.IntoContext(b.Context(), logr.Discard())
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "one"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.Reconcile(ctx, request); err != nil {
			b.Fatal(err)
		}
	}
	if n < b.N {
		b.Fatalf("the step ran %d times in %d reconciles", n, b.N)
	}
}

// child is a ConfigMap of some size, another one for each number.
func child(n int) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	cm.Namespace, cm.Name, cm.Labels = "default", "child", map[string]string{"app": "widget", "tier": "backend"}
	cm.Data = map[string]string{"number": strconv.Itoa(n)}
	for i := range 20 {
		cm.Data["key-"+strconv.Itoa(i)] = "a value of some length"
	}
	return cm
}

// instant returns a client of an API server that accepts everything at once. Its Widget is a newer
// one at each read, so that no reconcile is the echo of the one before.
func instant(tb testing.TB) client.Client {
	tb.Helper()
	scheme, err := widget.NewScheme()
	must(tb, err)
	version, own := 0, &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
	answer := func(obj client.Object) {
		version++
		obj.SetResourceVersion(strconv.Itoa(version))
		obj.SetUID("1")
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			obj.SetNamespace(key.Namespace)
			obj.SetName(key.Name)
			if w, ok := obj.(*widget.Widget); ok {
				*w = *own
			}
			answer(obj)
			return nil
		},
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			answer(obj)
			return nil
		},
		Update: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.UpdateOption) error {
			answer(obj)
			return nil
		},
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			answer(obj)
			return nil
		},
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			answer(obj.(client.Object)) //nolint:errcheck // it is an unstructured one
			return nil
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			own = own.DeepCopyObject().(*widget.Widget) //nolint:errcheck // a copy has the type
			if err := json.Unmarshal(data, own); err != nil {
				return err
			}
			answer(own)
			*obj.(*widget.Widget) = *own //nolint:errcheck // nothing else has a status
			return nil
		},
	})
}
