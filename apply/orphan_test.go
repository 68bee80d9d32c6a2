// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

var orphans = flag.Int("orphans", 3, "delete so many Shops without their children on the real server")

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
func (c *cluster) run(t *testing.T, config *rest.Config, slow bool, options cache.Options, s step.Step[*Shop]) (stop func()) {
	t.Helper()
	config = rest.CopyConfig(config)
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
			want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: req.Object.Name}})
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
	eachOrphaning(t, func(t *testing.T, name string, test func(*testing.T, *orphaning)) {
		synctest.Test(t, func(t *testing.T) {
			ctrl.SetLogger(logr.Discard())
			server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
			must(t, server.Install(shopDefinition()))
			c := connect(t, server.Config(), metav1.NamespaceDefault)
			test(t, &orphaning{cluster: c, config: server.Config(), shops: 20, cascade: func(propagation metav1.DeletionPropagation, shop string) {
				must(t, c.client.Delete(c.ctx, &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: shop}}, client.PropagationPolicy(propagation)))
			}})
			time.Sleep(time.Second) // the last read ends
		})
	})
}

// testOrphans is TestOrphanedChildrenStay with the garbage collector and kubectl.
func testOrphans(t *testing.T, plane *controlplane.ControlPlane, start func(*testing.T, string) *cluster) {
	t.Helper()
	n := 0
	eachOrphaning(t, func(t *testing.T, name string, test func(*testing.T, *orphaning)) {
		n++
		c := start(t, fmt.Sprint("orphans-", n))
		c.patience = 2 * time.Minute // the garbage collector notices kinds every 30 seconds
		test(t, &orphaning{cluster: c, config: plane.Config(), shops: *orphans, cascade: func(propagation metav1.DeletionPropagation, shop string) {
			kubectl(t, plane, "", "delete", "shop", shop, "-n", c.namespace, "--wait=false", "--cascade="+strings.ToLower(string(propagation)))
		}})
	})
}

// kubectl runs it, and returns what it prints.
func kubectl(t *testing.T, plane *controlplane.ControlPlane, stdin string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), plane.Assets().Program("kubectl"), append([]string{"--kubeconfig", plane.Kubeconfig()}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// eachOrphaning runs a test for each way to keep children, and with an operator that sees the
// deletion at once or late.
func eachOrphaning(t *testing.T, run func(t *testing.T, name string, test func(*testing.T, *orphaning))) {
	t.Helper()
	for _, tt := range orphanable() {
		for _, slow := range []bool{false, true} {
			name := fmt.Sprintf("%s, slow %t", tt.name, slow)
			t.Run(name, func(t *testing.T) {
				run(t, name, func(t *testing.T, o *orphaning) { o.orphanCase = tt; o.test(t, slow) })
			})
		}
	}
}

// An orphaning is a cluster in which Shops are deleted without their children.
type orphaning struct {
	*cluster
	orphanCase
	config  *rest.Config
	shops   int
	cascade func(propagation metav1.DeletionPropagation, shop string)
}

func (o *orphaning) test(t *testing.T, slow bool) {
	t.Helper()
	stop := o.run(t, o.config, slow, cache.Options{DefaultTransform: apply.CacheTransform()}, o.step(o.cluster))
	defer stop()
	exists := func(name string) bool { return o.get(&Shop{}, name) }
	o.each("at first", o.shops, func(name string) { o.shop(name) }, exists)
	o.each("without their owners", o.shops, func(name string) { o.cascade(metav1.DeletePropagationOrphan, name) }, func(name string) bool { return !exists(name) })
	o.each("with new owners", o.shops, func(name string) { o.shop(name) }, func(name string) bool {
		if job, shop := (&batchv1.Job{}), (&Shop{}); o.name == "once" { // it may not have completed
			return o.get(job, name) && o.get(shop, name) && metav1.IsControlledBy(job, shop)
		}
		return o.condition(&Shop{ObjectMeta: metav1.ObjectMeta{Name: name}}) == "True AllReady"
	})
	o.each("deleted with their owners", 0, func(name string) { o.cascade(metav1.DeletePropagationForeground, name) }, func(name string) bool { return !exists(name) })
}

// each does something to all Shops until it is done, and counts the children.
func (o *orphaning) each(when string, want int, do func(name string), done func(name string) bool) {
	o.t.Helper()
	names := make([]string, o.shops)
	for i := range names {
		names[i] = fmt.Sprint("shop-", i)
		do(names[i])
	}
	if o.patience == 0 {
		time.Sleep(3 * time.Minute) // in a bubble
	}
	undone := func() bool {
		return slices.ContainsFunc(names, func(name string) bool { return !done(name) }) || o.count() != want
	}
	for deadline := time.Now().Add(o.patience); undone(); time.Sleep(50 * time.Millisecond) {
		if !time.Now().Before(deadline) {
			o.t.Errorf("%s there are %d children, want %d; of the last Shop %t is done", when, o.count(), want, done(names[o.shops-1]))
			return
		}
	}
	if o.patience > 0 {
		time.Sleep(2 * time.Second) // for what is seen late
		if got := o.count(); got != want {
			o.t.Errorf("%s there are %d children after a while, want %d", when, got, want)
		}
	}
}

// count returns how many children there are.
func (o *orphaning) count() (n int) {
	o.t.Helper()
	if err := o.client.List(o.ctx, o.list, client.InNamespace(o.namespace)); err != nil {
		o.t.Fatalf("listing: %v", err)
	}
	_ = eachName(o.list, func(name string) { n += strings.Count(name, "shop-") })
	return n
}

// A child that the cache does not select is named, and one that it selects is not.
func TestChildThatItsCacheDoesNotSelect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
		must(t, server.Install(shopDefinition()))
		c := connect(t, server.Config(), metav1.NamespaceDefault)
		mine := labels.SelectorFromSet(labels.Set{"app": "mine"})
		stop := c.run(t, server.Config(), false, cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: mine}}},
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
