// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// namedBy returns what a Thing of the test names: in annotations, which takes no type of its own.
func namedBy(obj *Thing) []client.ObjectKey {
	return []client.ObjectKey{{Name: obj.Annotations["map"]}, {Namespace: obj.Annotations["namespace"], Name: obj.Annotations["other"]}}
}

func TestWatchNamed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		thing := func(name string, annotations map[string]string) *Thing {
			return &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations}}
		}
		a, b := c.thing(), thing("b", map[string]string{"other": "one", "namespace": "kube-system", "map": "two"})
		a.Annotations = map[string]string{"map": "one"}
		c.must(c.user.Update(t.Context(), a))
		c.create(b, thing("c", nil))
		var log []string
		c.start(operator{
			name: "named", steps: steps{watching(doing("Note", does(func(_ context.Context, req *request) { addTo(&log, req.Object.Name) })), step.WatchNamed(&corev1.ConfigMap{}, namedBy))},
		})
		wants := func(names ...string) { // since it was called before
			t.Helper()
			pass(10 * time.Second)
			logs.Lock()
			defer logs.Unlock()
			slices.Sort(log)
			same(t, "reconciled", names, slices.Compact(log), cmpopts.EquateEmpty())
			log = nil
		}
		wants("a", "b", "c")

		one, two, far := configMap("one", nil), configMap("two", nil), configMap("one", nil)
		far.Namespace = "kube-system"
		c.create(one)
		wants("a")
		c.create(far)
		wants("b")
		c.create(configMap("none", nil))
		wants()
		causes := c.triggered("named")
		same(t, "the last cause", "b: ConfigMap kube-system/one created", causes[len(causes)-1])

		a = c.thing()
		a.Annotations = map[string]string{"map": "two"}
		c.must(c.user.Update(t.Context(), a))
		wants("a")
		one.Data = map[string]string{"a": "1"}
		c.must(c.user.Update(t.Context(), one))
		wants() // not any more
		c.create(two)
		wants("a", "b")
		c.must(c.user.Delete(t.Context(), b))
		wants()
		c.must(c.user.Delete(t.Context(), two))
		wants("a")
	})
}

func TestGetOrWait(t *testing.T) {
	far := configMap("there", nil)
	far.Namespace = "kube-system"
	w := newWorld(t, newThing(), configMap("there", map[string]string{"a": "1"}), far, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	req := &request{Object: newThing(), Client: w.client}
	for _, tt := range []struct {
		name string
		get  func() (client.Object, error)
		want string // the namespace
		wait string
	}{
		{"there", func() (client.Object, error) {
			return step.GetOrWait[*corev1.ConfigMap](t.Context(), req, client.ObjectKey{Name: "there"})
		}, "default", ""},
		{"in another namespace", func() (client.Object, error) {
			return step.GetOrWait[*corev1.ConfigMap](t.Context(), req, client.ObjectKey{Namespace: "kube-system", Name: "there"})
		}, "kube-system", ""},
		{"not there", func() (client.Object, error) {
			return step.GetOrWait[*corev1.ConfigMap](t.Context(), req, client.ObjectKey{Name: "db"})
		}, "", "ConfigMap default/db"},
		{"without a namespace", func() (client.Object, error) {
			return step.GetOrWait[*corev1.Node](t.Context(), req, client.ObjectKey{Name: "n"})
		}, "", ""},
		{"without a namespace, and not there", func() (client.Object, error) {
			return step.GetOrWait[*corev1.Node](t.Context(), req, client.ObjectKey{Name: "m"})
		}, "", "Node m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj, err := tt.get()
			waits := ctrlkit.Waits(err)
			switch {
			case tt.wait != "":
				if len(waits) != 1 || waits[0].For != tt.wait {
					t.Errorf("got %v, want a wait for %s", err, tt.wait)
				}
			case err != nil || obj.GetNamespace() != tt.want:
				t.Errorf("got %v and error %v", obj, err)
			}
		})
	}
	w.fault = failOn("get ConfigMap", errFirst)
	if _, err := step.GetOrWait[*corev1.ConfigMap](t.Context(), req, client.ObjectKey{Name: "there"}); !errors.Is(err, errFirst) || err.Error() != "reading ConfigMap default/there: the first thing broke" {
		t.Errorf("got %v", err)
	}
}
