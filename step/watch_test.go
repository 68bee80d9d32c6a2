// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/step"
)

// requested returns what an update of a watched object requests, in the order of the names.
func requested(t *testing.T, e *step.Engine[*Thing], before, now client.Object) string {
	t.Helper()
	wired, err := e.Wire()
	must(t, err)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	for _, f := range wired.Filters {
		f.Create(event.CreateEvent{Object: newThing()})
	}
	for _, w := range wired.Watches {
		if ev := (event.UpdateEvent{ObjectOld: before, ObjectNew: now}); w.Filter.Update(ev) {
			w.Handler.Update(t.Context(), ev, q)
		}
	}
	var keys []string
	for q.Len() > 0 {
		r, _ := q.Get()
		keys = append(keys, r.String())
		q.Done(r)
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

// A change requests reconciles for the object as it was and as it is, once for each key, which is
// completed.
func TestWhatWatchesRequest(t *testing.T) {
	labeled := func(version string, labels map[string]string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "uid-x", ResourceVersion: version, Labels: labels, OwnerReferences: owners}}
	}
	ownedBy := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: thingVersion.Group + "/v9", Kind: "Thing", Name: name, Controller: new(true)}
	}
	a, b := map[string]string{"thing": "a"}, map[string]string{"thing": "b"}
	to := func(keys ...client.ObjectKey) func(*corev1.ConfigMap) []client.ObjectKey {
		return func(*corev1.ConfigMap) []client.ObjectKey { return keys }
	}
	named := step.WatchNamed(&corev1.ConfigMap{}, func(*Thing) []client.ObjectKey { return []client.ObjectKey{{Name: "x"}} })
	all := named
	all.Owned = true
	all.Mapped = func(client.Object, schema.GroupKind) []client.ObjectKey {
		return []client.ObjectKey{{Name: "a"}, {Name: "c"}}
	}
	panics := step.WatchMapped(&corev1.ConfigMap{}, func(*corev1.ConfigMap) []client.ObjectKey { panic("no key") })
	foreign := ownedBy("a")
	foreign.APIVersion = "other.example.com/v1"
	for _, test := range []struct {
		name        string
		watch       step.Watch
		before, now *corev1.ConfigMap
		want        string
	}{
		{"both owners", step.WatchOwned(&corev1.ConfigMap{}), labeled("1", nil, ownedBy("a")), labeled("2", nil, ownedBy("b")), "default/a, default/b"},
		{"an owner of another group", step.WatchOwned(&corev1.ConfigMap{}), labeled("1", nil), labeled("2", nil, foreign), ""},
		{"both labels", step.WatchLabeled(&corev1.ConfigMap{}, "thing"), labeled("1", a), labeled("2", b), "default/a, default/b"},
		{"no label", step.WatchLabeled(&corev1.ConfigMap{}, "thing"), labeled("1", nil), labeled("2", nil), ""},
		{"keys of a function", step.WatchMapped(&corev1.ConfigMap{}, to(client.ObjectKey{Name: "a"}, client.ObjectKey{}, client.ObjectKey{Namespace: "other", Name: "b"})), labeled("1", nil), labeled("2", nil), "default/a, other/b"},
		{"a function that panics", panics, labeled("1", nil), labeled("2", nil), ""},
		{"a named one", named, labeled("1", nil), labeled("2", nil), "default/a"},
		{"all at once", all, labeled("1", nil), labeled("2", nil, ownedBy("a")), "default/a, default/c"},
		{"a repetition", all, labeled("2", nil, ownedBy("a")), labeled("2", nil, ownedBy("a")), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newWorld(t).engine(watching(doing("A", passes), test.watch))
			same(t, "requested", test.want, requested(t, e, test.before, test.now))
		})
	}
}

// A watch of the options is one of the engine, and needs permissions.
func TestWatchesOfOptions(t *testing.T) {
	w := newWorld(t)
	options := w.options()
	options.Watches = []step.Watch{step.WatchLabeled(&corev1.ConfigMap{}, "thing")}
	e := w.engineWith(options, doing("A", passes))
	x := configMap("x", nil)
	x.Labels = map[string]string{"thing": "a"}
	same(t, "requested", "default/a", requested(t, e, x, x))
	needs, err := e.Needs()
	must(t, err)
	if !slices.ContainsFunc(needs, func(n step.Need) bool { return n.Resource == "configmaps" && n.Verb == "watch" }) {
		t.Errorf("ConfigMaps need not be watched: %v", needs)
	}
}

// A mistake in a watch is found when the controller is made.
func TestWatchesAreChecked(t *testing.T) {
	for want, watch := range map[string]step.Watch{
		`step "A": watch 1: no watched object`: {},
		`it requests nothing`:                  step.WatchLabeled(&corev1.ConfigMap{}, ""),
		`the function of WatchNamed is for *v1.Secret, and the reconciled objects`: step.WatchNamed(&corev1.ConfigMap{}, func(*corev1.Secret) []client.ObjectKey { return nil }),
	} {
		if _, err := newWorld(t).engine(watching(doing("A", passes), watch)).Wire(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
