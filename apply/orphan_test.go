// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// slowly delays each read of the watch of Shops.
type slowly struct{ http.RoundTripper }

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/shops") {
		answer.Body = slowBody{answer.Body}
	}
	return answer, err
}

type slowBody struct{ io.ReadCloser }

func (s slowBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	time.Sleep(300 * time.Millisecond)
	return n, err
}

// run runs an operator of Shops with a step, and a watch of Shops that lags if it is slow.
func (c *cluster) run(t *testing.T, server *apiserver.Server, slow bool, options cache.Options, s step.Step[*Shop]) (stop func()) {
	t.Helper()
	config := server.Config()
	if slow {
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return slowly{rt} })
	}
	mgr := newManagerOf(t, config, options)
	engine, err := step.New(step.Options[*Shop]{Name: "shops", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Controller: controller.Options{MaxConcurrentReconciles: 4}}, s)
	if err == nil {
		err = engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Shop{}))
	}
	must(t, err)
	return startManager(t, mgr)
}

// An orphanCase is a way to keep children.
type orphanCase struct {
	name string
	list client.ObjectList
	step func(*cluster) step.Step[*Shop]
}

func orphanable() []orphanCase {
	parts := func(empty func(name string) client.Object, policy any, options ...apply.SetOption) func(*cluster) step.Step[*Shop] {
		return func(*cluster) step.Step[*Shop] {
			return apply.Children("Parts", func(_ context.Context, req *step.Request[*Shop], want *apply.Set) error {
				want.Add(empty(req.Object.Name), policy)
				return nil
			}, options...)
		}
	}
	here := func(name string) client.Object { return newConfigMap(name, "size", "1") }
	job := func(name string) client.Object { return newJob(name, "busybox:1") }
	elsewhere := func(c *cluster) step.Step[*Shop] {
		return apply.ChildrenIn("Parts", func(_ context.Context, req *step.Request[*Shop]) (apply.Place, error) {
			return apply.Place{Applier: &apply.Applier{Client: c.client, FieldOwner: "shops"}, Name: client.ObjectKey{Namespace: "kube-system", Name: req.Object.Name}, Every: time.Minute}, nil
		}, func(_ context.Context, req *step.Request[*Shop], want *apply.Set) error {
			want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: req.Object.Name}})
			return nil
		})
	}
	return []orphanCase{
		{"owned", &corev1.ConfigMapList{}, parts(here, apply.Wave(0), apply.Owns(&corev1.ConfigMap{}))},
		{"deleted in order", &corev1.ConfigMapList{}, parts(here, apply.Wave(0), apply.Owns(&corev1.ConfigMap{}), apply.DeleteInOrder())},
		{"tracked", &corev1.ConfigMapList{}, parts(here, apply.Unowned, apply.Tracks(&corev1.ConfigMap{}))},
		{"once", &batchv1.JobList{}, parts(job, apply.Once, apply.Owns(&batchv1.Job{}))},
		{"in another cluster", &corev1.ConfigMapList{}, elsewhere},
	}
}

// What is deleted with --cascade=orphan keeps its children, whatever keeps them, and also if the operator
// sees the deletion late. A Shop of that name takes them over, and is deleted with them.
func TestOrphanedChildrenStay(t *testing.T) {
	const shops = 20
	for _, tt := range orphanable() {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, slow %t", tt.name, slow), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctrl.SetLogger(logr.Discard())
					server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
					must(t, server.Install(shopDefinition()))
					c := connect(t, server.Config(), metav1.NamespaceDefault)
					stop := c.run(t, server, slow, cache.Options{DefaultTransform: apply.CacheTransform("shops")}, tt.step(c))
					eachShop := func(do func(name string)) {
						for i := range shops {
							do(fmt.Sprint("shop-", i))
						}
						time.Sleep(3 * time.Minute)
					}
					count := func(when string, want int) {
						t.Helper()
						must(t, c.client.List(c.ctx, tt.list, client.InNamespace("default")))
						n := 0
						_ = eachName(tt.list, func(name string) { n += strings.Count(name, "shop-") })
						if n != want {
							t.Errorf("%s there are %d children, want %d", when, n, want)
						}
					}
					eachShop(func(name string) { c.shop(name) })
					count("at first", shops)
					eachShop(func(name string) {
						must(t, c.client.Delete(c.ctx, &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
					})
					count("without their owners", shops)
					if c.get(&Shop{}, "shop-0") {
						t.Error("the deletion hangs")
					}
					eachShop(func(name string) { c.shop(name) })
					count("with new owners", shops)
					if got := c.condition(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop-0"}}); tt.name != "once" && got != "True AllReady" {
						t.Errorf("the new owner has %s", got)
					}
					eachShop(func(name string) {
						must(t, c.client.Delete(c.ctx, &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, client.PropagationPolicy(metav1.DeletePropagationForeground)))
					})
					count("deleted with their owners", 0)
					stop()
					time.Sleep(time.Second) // the last read ends
				})
			})
		}
	}
}

// A child that the cache does not select is named, and one that it selects is not.
func TestChildThatItsCacheDoesNotSelect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
		must(t, server.Install(shopDefinition()))
		c := connect(t, server.Config(), metav1.NamespaceDefault)
		mine := labels.SelectorFromSet(labels.Set{"app": "mine"})
		stop := c.run(t, server, false, cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: mine}}},
			apply.Children("Parts", func(_ context.Context, req *step.Request[*Shop], want *apply.Set) error {
				cm := newConfigMap(req.Object.Name)
				if req.Object.Name == "selected" {
					cm.Labels = map[string]string{"app": "mine"}
				}
				want.Add(cm)
				return nil
			}, apply.Owns(&corev1.ConfigMap{})))
		hidden := c.shop("hidden")
		time.Sleep(3 * time.Minute)
		if got := c.condition(hidden); !strings.Contains(got, "NotSelected: ConfigMap default/hidden exists, and the cache of the operator does not have it") || !strings.Contains(got, "apply.ctrlkit.dev/set=") {
			t.Errorf("it has %s", got)
		}
		selected := c.shop("selected")
		time.Sleep(10 * time.Minute)
		if got := c.condition(selected); got != "True AllReady" {
			t.Errorf("the right twin has %s", got)
		}
		stop()
	})
}
