// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/policy"
)

// A Bucket acknowledges requests.
type Bucket struct {
	metav1.ObjectMeta
	Status         BucketStatus
	DeletionPolicy string // of its spec
}

type BucketStatus struct {
	policy.RequestStatus `json:",inline"`
	Size                 int `json:"size,omitempty"`
}

// A Mixed embeds something else first.
type Mixed struct {
	metav1.ObjectMeta
	Status struct {
		metav1.ListMeta
		policy.RequestStatus
	}
}

// A Nested has the field elsewhere than users look for it.
type Nested struct {
	metav1.ObjectMeta
	Status struct{ Request policy.RequestStatus }
}

// A Silent has a status that acknowledges nothing.
type Silent struct {
	metav1.ObjectMeta
	Status struct{ Size int }
}

// An Accessible keeps its status elsewhere.
type Accessible struct{ kept *policy.RequestStatus }

func (a *Accessible) GetRequestStatus() *policy.RequestStatus { return a.kept }

// A request is pending until it is acknowledged, and so is the next one.
func TestRequest(t *testing.T) {
	bucket := &Bucket{}
	status := policy.StatusOf(bucket)
	for _, step := range []struct {
		token   string
		pending bool
		handled string
	}{{"", false, ""}, {"1", true, "1"}, {"1", false, "1"}, {"2", true, "2"}, {"", false, "2"}, {"2", false, "2"}, {"1", true, "1"}} {
		metav1.SetMetaDataAnnotation(&bucket.ObjectMeta, policy.ReconcileNowAnnotation, step.token)
		request := policy.RequestOf(bucket)
		if got := request.Pending(status); got != step.pending {
			t.Errorf("%q is pending: %v, want %v", step.token, got, step.pending)
		}
		request.Acknowledge(status)
		if got := bucket.Status.LastHandledReconcileAt; got != step.handled || request.Pending(status) {
			t.Errorf("%q: handled %q, want %q", step.token, got, step.handled)
		}
	}
}

// The requests of the object and of its namespace are acknowledged each by itself.
func TestRequestOfNamespace(t *testing.T) {
	bucket, prod := &Bucket{}, &metav1.ObjectMeta{Name: "prod"}
	bucket.Namespace = "prod"
	request := func(object, namespace string, defaults policy.Defaults) policy.Request {
		metav1.SetMetaDataAnnotation(&bucket.ObjectMeta, policy.ReconcileNowAnnotation, object)
		metav1.SetMetaDataAnnotation(prod, policy.ReconcileNowAnnotation, namespace)
		return policy.Resolve(bucket, prod, defaults).Request()
	}
	status := &bucket.Status.RequestStatus
	if request("", "1", policy.Defaults{IgnoreNamespaces: true}).Pending(status) {
		t.Error("a request of a namespace is pending that does not count")
	}
	for _, step := range []struct {
		object, namespace string
		pending           bool
		want              policy.RequestStatus
	}{
		{"", "", false, policy.RequestStatus{}},
		{"", "1", true, policy.RequestStatus{LastHandledNamespaceReconcileAt: "1"}},
		{"1", "1", true, policy.RequestStatus{LastHandledReconcileAt: "1", LastHandledNamespaceReconcileAt: "1"}},
		{"1", "2", true, policy.RequestStatus{LastHandledReconcileAt: "1", LastHandledNamespaceReconcileAt: "2"}},
		{"", "", false, policy.RequestStatus{LastHandledReconcileAt: "1", LastHandledNamespaceReconcileAt: "2"}},
	} {
		r := request(step.object, step.namespace, policy.Defaults{})
		if got := r.Pending(status); got != step.pending {
			t.Errorf("%q and %q are pending: %v", step.object, step.namespace, got)
		}
		if r.Acknowledge(status); *status != step.want {
			t.Errorf("%q and %q: %+v, want %+v", step.object, step.namespace, *status, step.want)
		}
	}
}

// What arrives while a reconcile runs is not acknowledged by it.
func TestRequestDuringAReconcile(t *testing.T) {
	bucket := &Bucket{}
	bucket.Annotations = map[string]string{policy.ReconcileNowAnnotation: "1"}
	request := policy.RequestOf(bucket)
	bucket.Annotations[policy.ReconcileNowAnnotation] = "2"
	request.Acknowledge(policy.StatusOf(bucket))
	if got := bucket.Status.LastHandledReconcileAt; got != "1" || !policy.RequestOf(bucket).Pending(policy.StatusOf(bucket)) {
		t.Errorf("handled %q, and the second one is not pending", got)
	}
}

func TestStatusOf(t *testing.T) {
	kept := &policy.RequestStatus{}
	bucket, mixed := &Bucket{}, &Mixed{}
	for name, test := range map[string]struct {
		object any
		want   *policy.RequestStatus
	}{
		"embedded":          {bucket, &bucket.Status.RequestStatus},
		"embedded second":   {mixed, &mixed.Status.RequestStatus},
		"not embedded":      {&Nested{}, nil},
		"by a method":       {&Accessible{kept}, kept},
		"none":              {&Silent{}, nil},
		"no status":         {&metav1.PartialObjectMetadata{}, nil},
		"not a pointer":     {Bucket{}, nil},
		"a nil pointer":     {(*Bucket)(nil), nil},
		"nothing":           {nil, nil},
		"a pointer to none": {new(int), nil},
	} {
		if got := policy.StatusOf(test.object); got != test.want {
			t.Errorf("%s: got %p, want %p", name, got, test.want)
		}
	}
	policy.Request{}.Acknowledge(nil)
	if policy.RequestOf(object("reconcile-now", "1")).Pending(nil) {
		t.Error("a request is pending without a status")
	}
}

// The name of the field is what users wait for.
func TestRequestStatusJSON(t *testing.T) {
	data, err := json.Marshal(BucketStatus{RequestStatus: policy.RequestStatus{LastHandledReconcileAt: "42"}})
	if want := `{"lastHandledReconcileAt":"42"}`; err != nil || string(data) != want {
		t.Errorf("%s, error %v, want %s", data, err, want)
	}
}
