package apiserver_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

func TestClient(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	c, err := client.New(server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: map[string]string{"a": "b"}}
	if err := c.Create(ctx, cm); err != nil {
		t.Fatal(err)
	}
	cm.Data["a"] = "c"
	if err := c.Update(ctx, cm); err != nil {
		t.Fatal(err)
	}
	stale := cm.DeepCopy()
	cm.Data["a"] = "d"
	if err := c.Update(ctx, cm); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("updating a stale object: %v, want a conflict", err)
	}
	t.Logf("%+v", cm)
	apply := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: map[string]string{"a": "e", "f": "g"}}
	err = c.Patch(ctx, apply, client.Apply, client.FieldOwner("me")) //nolint:staticcheck // typed objects can be applied too
	if !apierrors.IsConflict(err) {
		t.Errorf("applying: %v, want a conflict", err)
	}
	apply.ManagedFields = nil
	if err := c.Patch(ctx, apply, client.Apply, client.FieldOwner("me"), client.ForceOwnership); err != nil { //nolint:staticcheck // typed objects can be applied too
		t.Errorf("applying by force: %v", err)
	}
	t.Logf("%+v", apply)
	if err := c.Delete(ctx, cm); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(cm), cm); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want not found", err)
	}
}

func BenchmarkUpdate(b *testing.B) {
	server := apiserver.New(apiserver.Options{})
	c, err := client.New(server.Config(), client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: map[string]string{"a": "b"}}
	if err := c.Create(ctx, cm); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		cm.Data["a"] = string(rune('a' + i%26))
		if err := c.Update(ctx, cm); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		apiserver.New(apiserver.Options{})
	}
}
