// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/journal"
)

// observed are the entries that a recorder has reported.
type observed []string

// Observe implements [journal.Observer].
func (o *observed) Observe(_ context.Context, e journal.Entry) {
	*o = append(*o, fmt.Sprint(e.Controller, ": ", e.Object, ": ", e.Event.(journal.Triggered).Cause)) //nolint:errcheck // it reports no other
}

// newRecorder returns a recorder of the Pods of a controller, and what it reports.
func newRecorder(t *testing.T) (*Recorder, *observed) {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	entries := &observed{}
	return &Recorder{
		Controller: "pods", Kind: schema.GroupKind{Kind: "Pod"}, Client: fake.NewClientBuilder().WithScheme(scheme).Build(),
		Observer: entries, Namespaced: func() bool { return true },
	}, entries
}

var key = types.NamespacedName{Namespace: "default", Name: "a"}

func pod(version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: version}}
}

func ownedBy(owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child", OwnerReferences: owners}}
}

// take returns the causes of the reconcile of an object.
func take(r *Recorder, key types.NamespacedName) []string {
	var texts []string
	for _, s := range r.Take(key) {
		texts = append(texts, s.cause.String())
	}
	return texts
}

// Events of one kind are one cause, which one reconcile takes.
func TestCausesAreTakenOnce(t *testing.T) {
	r, entries := newRecorder(t)
	r.Own(pod("1"), "", "updated")
	r.Own(pod("2"), "", "updated")
	r.Own(pod("3"), "", "deleted")
	seen := r.Take(key)
	want := []Seen{
		{journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated", Times: 2}, "2"},
		{journal.Cause{Kind: journal.CauseOwnChange, Verb: "deleted", Times: 1}, "3"},
	}
	same(t, "causes", want, seen, cmp.AllowUnexported(Seen{}))
	if again := r.Take(key); len(again) > 0 || len(r.pending) > 0 {
		t.Errorf("they are taken again: %v, and kept: %v", again, r.pending)
	}
	reported := observed{
		"pods: Pod default/a: own change (updated)", "pods: Pod default/a: own change (updated)", "pods: Pod default/a: own change (deleted)",
	}
	same(t, "reported", reported, *entries)
}

// There is a start of every object when an operator starts: it is a cause, and not reported.
func TestAStartIsNotReported(t *testing.T) {
	r, entries := newRecorder(t)
	r.Own(pod("1"), journal.CauseStart, "")
	if len(*entries) > 0 {
		t.Errorf("reported %v", *entries)
	}
	same(t, "causes", []string{"start"}, take(r, key))
}

// An event of a child is a cause of the owners of the kind of the controller.
func TestCausesOfOwners(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a"}
	tests := []struct {
		name       string
		owner      metav1.OwnerReference
		namespaced bool
		key        types.NamespacedName
		want       []string
	}{
		{"owned", owner, true, key, []string{"ConfigMap default/child updated"}},
		{"another version", metav1.OwnerReference{APIVersion: "v2", Kind: "Pod", Name: "a"}, true, key, []string{"ConfigMap default/child updated"}},
		{"another kind", metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "a"}, true, key, nil},
		{"another group", metav1.OwnerReference{APIVersion: "x.example.com/v1", Kind: "Pod", Name: "a"}, true, key, nil},
		{"another name", metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "b"}, true, key, nil},
		{"an owner without a namespace", owner, false, types.NamespacedName{Name: "a"}, []string{"ConfigMap default/child updated"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, entries := newRecorder(t)
			r.Namespaced = func() bool { return test.namespaced }
			r.Child(ownedBy(test.owner), "", "updated")
			same(t, "causes", test.want, take(r, test.key))
			if test.want == nil && test.owner.Name == "a" && len(*entries) > 0 {
				t.Errorf("reported %v", *entries)
			}
		})
	}
}

// An object that is never reconciled does not make a recorder grow.
func TestPendingCausesAreBounded(t *testing.T) {
	r, _ := newRecorder(t)
	for i := range 3 * mostPending {
		r.Own(pod("1"), "", "verb-"+strconv.Itoa(i))
	}
	seen, times := r.Take(key), 0
	for _, s := range seen {
		times += s.cause.Times
	}
	if len(seen) != mostPending || times != 3*mostPending {
		t.Errorf("%d causes count %d events, want %d and %d", len(seen), times, mostPending, 3*mostPending)
	}
}

// Without an observer, a recorder costs nothing.
func TestWithoutAnObserver(t *testing.T) {
	r, _ := newRecorder(t)
	r.Observer = nil
	r.Own(pod("1"), "", "updated")
	r.Child(ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "a"}), "", "updated")
	if len(r.pending) > 0 {
		t.Errorf("pending %v", r.pending)
	}
}

// The causes of all objects at the start take no memory when they are taken.
func TestCausesOfManyObjectsAreReleased(t *testing.T) {
	r, _ := newRecorder(t)
	for i := range 1000 {
		r.record(types.NamespacedName{Name: strconv.Itoa(i)}, Seen{journal.Cause{Kind: journal.CauseForeignChange, Verb: "updated"}, ""})
	}
	for i := range 1000 {
		r.Take(types.NamespacedName{Name: strconv.Itoa(i)})
	}
	if r.pending != nil {
		t.Errorf("a map with room for 1000 objects is kept, and has %d", len(r.pending))
	}
	r.Own(pod("1"), "", "updated")
	r.Take(key)
	if r.pending == nil {
		t.Error("a small map is made again for each event")
	}
}

// same checks that got is want. What says of what, and may be empty in a test that checks one thing.
func same[T any](t testing.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
