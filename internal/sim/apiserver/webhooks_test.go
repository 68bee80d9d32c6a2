// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// An Admission sees each write twice, changes it the first time, and refuses it with its error.
func TestAdmission(t *testing.T) {
	var seen []string
	refusal := error(nil)
	admission := func(w apiserver.Write) ([]string, error) {
		if w.Request.Resource.Resource != "configmaps" {
			return nil, nil
		}
		seen = append(seen, fmt.Sprintf("%s mutating=%t new=%t gone=%t", w.Request.Verb, w.Mutating, w.Old == nil, w.Object == nil))
		if w.Mutating && w.Object != nil {
			w.Object.SetLabels(map[string]string{"by": "webhook"})
			return nil, nil
		}
		return nil, refusal
	}
	w := world{t, apiserver.New(apiserver.Options{Admission: admission})}
	const path = "/api/v1/namespaces/default/configmaps"
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	labels := func(content map[string]any) any {
		metadata, _ := content["metadata"].(map[string]any) //nolint:errcheck // nil is compared
		return metadata["labels"]
	}
	want := any(map[string]any{"by": "webhook"})
	if code, created := w.do(http.MethodPost, path, object); code != http.StatusCreated || !cmp.Equal(labels(created), want) {
		t.Errorf("created: %d %v, want the label of the webhook", code, created)
	}
	if code, updated := w.do(http.MethodPut, path+"/a", object); code != http.StatusOK || !cmp.Equal(labels(updated), want) {
		t.Errorf("updated: %d %v, want the label of the webhook", code, updated)
	}
	for err, code := range map[error]int{
		errors.New("out of order"): http.StatusInternalServerError,
		apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no")):     http.StatusForbidden,
		&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTeapot}}: http.StatusTeapot, // without a reason
	} {
		refusal = err
		if got, _ := w.do(http.MethodDelete, path+"/a", ""); got != code {
			t.Errorf("%v: got %d, want %d", err, got, code)
		}
		if got, _ := w.do(http.MethodPost, path, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`); got != code {
			t.Errorf("%v: got %d, want %d", err, got, code)
		}
	}
	if diff := cmp.Diff([]string{"a"}, w.names()); diff != "" {
		t.Errorf("what is refused has no effect (-want +got):\n%s", diff)
	}
	refusal = nil
	if code, _ := w.do(http.MethodDelete, path+"/a", ""); code != http.StatusOK {
		t.Errorf("deleted: %d", code)
	}
	got := append(append([]string{}, seen[:4]...), seen[len(seen)-2:]...)
	if diff := cmp.Diff([]string{
		"create mutating=true new=true gone=false", "create mutating=false new=true gone=false",
		"update mutating=true new=false gone=false", "update mutating=false new=false gone=false",
		"delete mutating=true new=false gone=true", "delete mutating=false new=false gone=true",
	}, got); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
