// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Database is what the tests reconcile.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Secret string `json:"secret,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		User       string             `json:"user,omitempty"`
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	} `json:"status,omitempty"`
}

func (d *Database) DeepCopyObject() runtime.Object {
	c := *d
	d.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = append([]metav1.Condition(nil), d.Status.Conditions...)
	return &c
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s.AddKnownTypes(version, &Database{})
	metav1.AddToGroupVersion(s, version)
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}

var scheme = ctrlkittest.WithScheme(newScheme())

type request = step.Request[*Database]

func newStepDatabase() *Database {
	d := &Database{}
	d.Spec.Secret = "db"
	return d
}

func newSecret(name, user string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"user": []byte(user)}}
}

// readUser is the step that is tested.
var readUser = step.Step[*Database]{Name: "ReadUser", Do: readSecret, Cleanup: deleteSecret, Conditions: []condition.Declaration{{Type: "SecretRead"}}}

func readSecret(ctx context.Context, req *request) error {
	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: req.Object.Spec.Secret})
	if err != nil {
		return err
	}
	req.Object.Status.User = string(secret.Data["user"])
	req.Object.Annotations = map[string]string{"read": secret.Name}
	req.Conditions.MarkHealthy("SecretRead", "Read", "")
	return ctrlkit.RequeueWithin(time.Hour)
}

func deleteSecret(ctx context.Context, req *request) error {
	return req.Client.Delete(ctx, newSecret(req.Object.Spec.Secret, ""))
}

func TestDo(t *testing.T) {
	got := ctrlkittest.Do(t, readUser, newStepDatabase(), scheme, ctrlkittest.WithObjects(newSecret("db", "app")))
	if want := `{"metadata":{"annotations":{"read":"db"}},"status":{"user":"app"}}`; got.Saved != want {
		t.Errorf("saved %s, want %s", got.Saved, want)
	}
	if diff := cmp.Diff(map[string]string{"Ready": "True Ready", "SecretRead": "True Read"}, got.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if got.Err != nil || !got.Passed || got.After != time.Hour || len(got.Waits)+len(got.Writes) > 0 || got.Object.Status.User != "app" || len(got.Object.Finalizers) > 0 {
		t.Errorf("got %+v", got)
	}
}

func TestDoThatWaits(t *testing.T) {
	got := ctrlkittest.Do(t, readUser, newStepDatabase(), scheme)
	if diff := cmp.Diff([]string{"Secret default/db"}, got.Waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if got.Passed || got.Err != nil || got.Saved != "" || got.Conditions["Ready"] != "False Waiting: waits for Secret default/db" {
		t.Errorf("got %+v", got)
	}
}

func TestDoThatFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "db", errors.New("no permission"))
	got := ctrlkittest.Do(t, readUser, newStepDatabase(), scheme, ctrlkittest.WithInterceptor(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Secret); ok {
				return forbidden
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}))
	if !errors.Is(got.Err, forbidden) || got.Class != failure.ClassForbidden || got.Passed {
		t.Errorf("got %+v", got)
	}
}

func TestDoThatPanics(t *testing.T) {
	got := ctrlkittest.Do(t, step.Step[*Database]{Name: "P", Do: func(context.Context, *request) error { panic("bug") }}, newStepDatabase(), scheme)
	if got.Class != failure.ClassPanic || got.Passed {
		t.Errorf("got %+v", got)
	}
}

// A step that changes what is not the operator's is found out.
func TestDoThatChangesTheSpec(t *testing.T) {
	got := ctrlkittest.Do(t, step.Step[*Database]{Name: "S", Do: func(_ context.Context, req *request) error {
		req.Object.Spec.Secret = "other"
		return nil
	}}, newStepDatabase(), scheme)
	if !errors.Is(got.Err, step.ErrReadOnlyField) {
		t.Errorf("got %+v", got)
	}
}

func TestCleanup(t *testing.T) {
	got := ctrlkittest.Cleanup(t, readUser, newStepDatabase(), scheme, ctrlkittest.WithObjects(newSecret("db", "app")))
	if diff := cmp.Diff([]string{"delete Secret default/db"}, got.Writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got.Err != nil || !got.Passed || got.Object != nil {
		t.Errorf("got %+v", got)
	}
	if err := got.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "db"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the Secret: %v, want that it is gone", err)
	}
}

func TestCleanupThatFails(t *testing.T) {
	got := ctrlkittest.Cleanup(t, readUser, newStepDatabase(), scheme)
	if !apierrors.IsNotFound(got.Err) || got.Passed || got.Object == nil {
		t.Errorf("got %+v", got)
	}
}

var userKey = step.NewKey[string]("user")

func TestGiven(t *testing.T) {
	look := step.Step[*Database]{Name: "Look", Do: func(_ context.Context, req *request) error {
		req.Object.Status.User, _ = step.Lookup(req, userKey)
		return nil
	}}
	got := ctrlkittest.Do(t, look, newStepDatabase(), scheme, ctrlkittest.WithSetup(func(req *request) { step.Put(req, userKey, "app") }))
	if got.Object.Status.User != "app" {
		t.Errorf("got %+v", got)
	}
}

// What the test says of the cluster is there: the status too, namespaces, and owners.
func TestWorld(t *testing.T) {
	obj := newStepDatabase()
	obj.Namespace, obj.Name, obj.Status.User = "team", "orders", "before"
	owned := newSecret("owned", "")
	owned.Namespace = "team"
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Database", Name: "orders"}}
	look := step.Step[*Database]{Name: "Look", Do: func(ctx context.Context, req *request) error {
		var secret corev1.Secret
		if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "team", Name: "owned"}, &secret); err != nil {
			return err
		}
		if req.Object.Status.User != "before" || secret.OwnerReferences[0].UID != req.Object.UID || req.Object.UID == "" {
			t.Errorf("the object is %+v, the Secret %+v", req.Object, secret)
		}
		return nil
	}}
	if got := ctrlkittest.Do(t, look, obj, scheme, ctrlkittest.WithObjects(owned)); got.Err != nil || !got.Passed {
		t.Errorf("got %+v", got)
	}
}

func TestNewRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := ctrlkittest.NewRequest(t, newStepDatabase(), scheme, ctrlkittest.WithObjects(newSecret("db", "app")), ctrlkittest.WithConditions(readUser.Conditions...))
		if err := readSecret(t.Context(), req); len(ctrlkit.Waits(err)) > 0 {
			t.Fatalf("it waits: %v", err)
		}
		if req.Object.Status.User != "app" || req.Snapshot().Status.User != "" || !req.Now.Equal(time.Now()) {
			t.Errorf("got %+v, before %+v", req.Object.Status, req.Snapshot().Status)
		}
		if c, _ := req.Conditions.Get("SecretRead"); c.Status != metav1.ConditionTrue {
			t.Errorf("condition %+v", c)
		}
		if err := req.EnsureFresh(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
