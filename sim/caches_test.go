// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
)

func newPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default", Labels: map[string]string{"a": "1"}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Gi"))},
		}}}},
	}
}

func TestCaches(t *testing.T) {
	const changed = `Pod default/x: metadata.labels.a: "1" became "2"`
	for name, c := range map[string]struct {
		do   func(c *caches, i *informer, pod *corev1.Pod)
		want []string
	}{
		"nothing is changed": {func(*caches, *informer, *corev1.Pod) {}, nil},
		"a copy is changed":  {func(_ *caches, _ *informer, pod *corev1.Pod) { pod.DeepCopy().Labels["a"] = "2" }, nil},
		"the text of a quantity is kept": {func(_ *caches, _ *informer, pod *corev1.Pod) {
			_ = pod.Spec.Volumes[0].EmptyDir.SizeLimit.String()
		}, nil},
		"a field is changed": {func(_ *caches, _ *informer, pod *corev1.Pod) { pod.Labels["a"] = "2" }, []string{changed}},
		"a field is changed, and the object comes anew": {func(c *caches, i *informer, pod *corev1.Pod) {
			pod.Labels["a"] = "2"
			c.note(i, newPod())
		}, []string{changed}},
		"it is changed back after it was seen": {func(c *caches, _ *informer, pod *corev1.Pod) {
			pod.Labels["a"] = "2"
			c.changed()
			pod.Labels["a"] = "1"
		}, []string{changed}},
		"another informer has another object": {func(c *caches, _ *informer, pod *corev1.Pod) {
			other := newPod()
			other.Labels["a"] = "3"
			c.note(&informer{kind: "Pod"}, other)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			all := newCaches()
			i := all.newInformer(&toolscache.ListWatch{}, &corev1.Pod{}, time.Hour, toolscache.Indexers{}).(*informer)
			pod := newPod()
			all.note(i, pod)
			c.do(all, i, pod)
			if diff := cmp.Diff(c.want, all.changed()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What controllers log at a level that is not logged is seen, and not logged.
func TestReconciles(t *testing.T) {
	var lines []string
	results := newReconciles()
	log := results.logger(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	of := func(name string) logr.Logger {
		return log.WithName("a").WithValues("controller", "c", "namespace", "default", "name", name)
	}
	of("x").Error(errors.New("no"), "Reconciler error")
	of("y").Error(errors.New("no"), "Reconciler error")
	of("z").Error(errors.New("no"), "something else")
	log.Error(errors.New("no"), "Reconciler error")
	of("y").V(5).Info("Reconcile done, requeueing after 3s")
	if diff := cmp.Diff([]judge.Failing{{Controller: "c", Object: "default/x", Err: "no"}}, results.failed()); diff != "" {
		t.Error(diff)
	}
	of("x").V(5).Info("Reconcile successful")
	if failed := results.failed(); len(failed) > 0 {
		t.Errorf("after a success: %v", failed)
	}
	if len(lines) != 4 {
		t.Errorf("logged %q, want the errors only", lines)
	}
}
