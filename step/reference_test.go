// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// installThings has a server know Things.
func installThings(t *testing.T, server *apiserver.Server) {
	t.Helper()
	err := server.Install(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.test.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: thingVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Thing", ListKind: "ThingList", Plural: "things", Singular: "thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: thingVersion.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	})
	must(t, err)
}

// namedBy returns what a Thing of the test names: in annotations, which takes no type of its own.
func namedBy(obj *Thing) []client.ObjectKey {
	return []client.ObjectKey{{Name: obj.Annotations["map"]}, {Namespace: obj.Annotations["namespace"], Name: obj.Annotations["other"]}}
}

// namedScene is an engine that watches what its objects name, with a manager, on an API server in
// memory.
type namedScene struct {
	t      *testing.T
	user   client.Client
	events *world // it only observes
	stop   func()

	mu         sync.Mutex
	reconciled []string
}

// newNamedScene sets the engine up, and returns what starts its manager.
func newNamedScene(t *testing.T) (s *namedScene, start func()) {
	server := apiserver.New(apiserver.Options{})
	installThings(t, server)
	s = &namedScene{t: t, events: &world{}}
	var err error
	s.user, err = client.New(server.Config(), client.Options{Scheme: kitScheme(t)})
	s.must(err)
	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{
		Scheme: kitScheme(t), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	s.must(err)
	engine, err := step.New(step.Options[*Thing]{Name: "named", Client: mgr.GetClient(), Observers: []journal.Observer{s.events}},
		doing("Note", does(func(_ context.Context, req *request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reconciled = append(s.reconciled, req.Object.Name)
		})))
	s.must(err)
	s.must(engine.Complete(engine.WatchNamed(ctrl.NewControllerManagedBy(mgr).For(&Thing{}), &corev1.ConfigMap{}, namedBy)))
	return s, func() {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		s.stop = func() {
			cancel()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}
}

func (s *namedScene) must(err error) {
	s.t.Helper()
	must(s.t, err)
}

func (s *namedScene) create(obj client.Object) { s.must(s.user.Create(s.t.Context(), obj)) }
func (s *namedScene) update(obj client.Object) { s.must(s.user.Update(s.t.Context(), obj)) }
func (s *namedScene) remove(obj client.Object) { s.must(s.user.Delete(s.t.Context(), obj)) }

// want checks which objects were reconciled since it was called before.
func (s *namedScene) want(names ...string) {
	s.t.Helper()
	time.Sleep(10 * time.Second) // until the manager is idle
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.reconciled)
	same(s.t, "reconciled", names, slices.Compact(s.reconciled))
	s.reconciled = nil
}

func TestWatchNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := newNamedScene(t)
		thing := func(name string, annotations map[string]string) *Thing {
			return &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations}}
		}
		a, b := thing("a", map[string]string{"map": "one"}), thing("b", map[string]string{"other": "one", "namespace": "kube-system", "map": "two"})
		s.create(a)
		s.create(b)
		s.create(thing("c", nil))
		start()
		s.want("a", "b", "c")

		one := configMap("one", nil)
		s.create(one)
		s.want("a")
		far := configMap("one", nil)
		far.Namespace = "kube-system"
		s.create(far)
		s.want("b")
		s.create(configMap("none", nil))
		s.want()
		if got := recorded[journal.Triggered](s.events); len(got) == 0 || got[len(got)-1].Cause.String() != "ConfigMap kube-system/one created" {
			t.Errorf("the journal has the causes %v", got)
		}

		s.must(s.user.Get(t.Context(), client.ObjectKeyFromObject(a), a))
		a.Annotations = map[string]string{"map": "two"}
		s.update(a)
		s.want("a")
		one.Data = map[string]string{"a": "1"}
		s.update(one)
		s.want() // not any more
		s.create(configMap("two", nil))
		s.want("a", "b")
		s.remove(b)
		s.want()
		s.remove(configMap("two", nil))
		s.want("a")
		s.stop()
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
