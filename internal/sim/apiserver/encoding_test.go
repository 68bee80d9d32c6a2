// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// recorder notes the content types of requests and answers.
type recorder struct {
	http.RoundTripper
	asked, got []string
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	if err == nil {
		r.asked, r.got = append(r.asked, request.Header.Get("Content-Type")), append(r.got, response.Header.Get("Content-Type"))
	}
	return response, err
}

func TestProtobuf(t *testing.T) {
	cfg := apiserver.New(apiserver.Options{}).Config()
	seen := &recorder{RoundTripper: cfg.Transport}
	cfg.Transport = seen
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, "application/vnd.kubernetes.protobuf,application/json"
	maps := kubernetes.NewForConfigOrDie(cfg).CoreV1().ConfigMaps("default")
	ctx := context.Background()

	w, err := maps.Watch(ctx, metav1.ListOptions{})
	must(t, err)
	defer w.Stop()
	created, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	if err != nil || created.Data["k"] != "v" || created.UID == "" {
		t.Fatalf("created %v, %v", created, err)
	}
	if e := <-w.ResultChan(); e.Type != watch.Added || e.Object.(*corev1.ConfigMap).UID != created.UID {
		t.Errorf("the watch sent %v", e)
	}
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].UID != created.UID || list.ResourceVersion == "" {
		t.Errorf("listed %v, %v", list, err)
	}
	if _, err := maps.Create(ctx, created, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) && err == nil {
		t.Errorf("created twice: %v", err)
	}
	wrong := metav1.NewPreconditionDeleteOptions("other")
	if err := maps.Delete(ctx, "x", *wrong); !apierrors.IsConflict(err) {
		t.Errorf("a deletion with a wrong precondition: %v", err)
	}
	if err := maps.Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	for _, got := range seen.got {
		if !strings.HasPrefix(got, runtime.ContentTypeProtobuf) {
			t.Errorf("answered with %s, want protobuf: %v", got, seen.got)
		}
	}
}

// controller-runtime's client asks for protobuf where a built-in kind is concerned, and for JSON of
// custom resources.
func TestDefaultClient(t *testing.T) {
	server := newWidgets(t)
	cfg := server.Config()
	seen := &recorder{RoundTripper: cfg.Transport}
	cfg.Transport = seen
	c, err := client.New(cfg, client.Options{})
	must(t, err)
	ctx := context.Background()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	must(t, c.Create(ctx, cm))
	if last := seen.got[len(seen.got)-1]; last != runtime.ContentTypeProtobuf {
		t.Errorf("a ConfigMap came as %s", last)
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := c.Get(ctx, client.ObjectKeyFromObject(cm), partial); err != nil || partial.UID != cm.UID {
		t.Errorf("the metadata of a ConfigMap: %v, %v", partial, err)
	}
	partials := &metav1.PartialObjectMetadataList{}
	partials.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(ctx, partials, client.InNamespace("default")); err != nil || len(partials.Items) != 1 {
		t.Errorf("the metadata of all ConfigMaps: %v, %v", partials, err)
	}
	widget := &metav1.PartialObjectMetadata{}
	widget.SetGroupVersionKind(widgetKind)
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "w"}, widget); err != nil || widget.Name != "w" {
		t.Errorf("the metadata of a custom resource: %v, %v", widget, err)
	}
}

// A watch with a time limit ends when it is over.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		maps := kubernetes.NewForConfigOrDie(rest.CopyConfig(apiserver.New(apiserver.Options{}).Config())).CoreV1().ConfigMaps("default")
		w, err := maps.Watch(context.Background(), metav1.ListOptions{TimeoutSeconds: new(int64(300))})
		must(t, err)
		start := time.Now()
		if e, ok := <-w.ResultChan(); ok {
			t.Errorf("the watch sent %v", e)
		}
		if took := time.Since(start); took != 5*time.Minute {
			t.Errorf("the watch ended after %s, want 5m", took)
		}
	})
}
