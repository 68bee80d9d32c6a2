// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var (
	plane       planetest.Shared
	installCRDs sync.Once
	errInstall  error
)

func TestMain(m *testing.M) {
	log.SetLogger(log.Log.WithSink(nil))
	os.Exit(plane.Main(m))
}

// A cluster is an API server with a namespace for one test, and another called its place.
type cluster struct {
	t                *testing.T
	config           *rest.Config // nil in memory
	live             client.Client
	namespace, place string
}

var testScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(errors.Join(scheme.AddToScheme(s), golden.AddToScheme(s)))
	return s
}()

func newCluster(t *testing.T) *cluster {
	t.Helper()
	rings.Test(t, "starts a control plane")
	config := rest.CopyConfig(plane.ForTest(t).Config())
	config.QPS, config.Burst = -1, -1
	installCRDs.Do(func() {
		_, errInstall = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"testdata/crds"}})
	})
	if errInstall != nil {
		t.Fatal(errInstall)
	}
	live, err := client.New(config, client.Options{Scheme: testScheme})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, config: config, live: live}
	c.namespace, c.place = c.newNamespace("test-"), c.newNamespace("zz-place-")
	return c
}

// A fakeIndexer registers indexes with a fake client.
type fakeIndexer struct{ *fake.ClientBuilder }

func (f fakeIndexer) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	f.WithIndex(obj, field, values)
	return nil
}

// inMemory is a cluster without an API server: a fake client with the indexes of Shops.
func inMemory(t *testing.T) *cluster {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(testScheme)
	if err := golden.IndexShops(t.Context(), fakeIndexer{builder}); err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, live: builder.Build(), namespace: "test", place: "zz-place"}
}

func (c *cluster) newNamespace(prefix string) string {
	c.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	c.create(namespace)
	return namespace.Name
}

func (c *cluster) create(objects ...client.Object) {
	c.t.Helper()
	for _, obj := range objects {
		if err := c.live.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

// cache starts a cache with the given indexes, which has everything that was created before.
func (c *cluster) cache(indexes ...func(context.Context, client.FieldIndexer) error) client.Reader {
	c.t.Helper()
	if c.config == nil {
		return c.live
	}
	reader, err := cache.New(c.config, cache.Options{Scheme: c.live.Scheme(), Mapper: c.live.RESTMapper()})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, index := range indexes {
		if err := index(c.t.Context(), reader); err != nil {
			c.t.Fatal(err)
		}
	}
	c.start(reader.Start)
	if !reader.WaitForCacheSync(c.t.Context()) {
		c.t.Fatal("the cache was not filled")
	}
	return reader
}

// start runs a cache or a manager until the test ends.
func (c *cluster) start(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("what the test started ended: %v", err)
		}
	})
}

// shop returns a Shop with a value in every field.
func (c *cluster) shop(name string) *golden.Shop {
	replicas, flag, tier := int32(3), golden.Flag(true), golden.Tier("gold")
	return &golden.Shop{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, UID: types.UID("uid-of-" + name)},
		Spec: golden.Spec{
			SecretName: "password", Place: c.place, Group: "g", Tier: tier, TierRef: &tier, Level: 2, Size: 65535,
			Replicas: &replicas, Flag: &flag, Hours: golden.Hours{From: 8, To: 20},
			Ref: &golden.Ref{Name: name, Namespace: &c.place, Next: &golden.Next{Name: "far"}},
		},
	}
}

// object makes the object that a text describes: its kind, its name, after PLACE/ if it is in the
// place, and further words. A word is a label, key=value, an annotation, @key=value, the type of a Secret, .type=value, the
// node of a Pod, .node=value, or one of
//
//	controlled    by the target
//	owned         by the target, which is not its controller
//	foreign       controlled by a namesake of the target
func (c *cluster) object(target client.Object, text string) client.Object {
	c.t.Helper()
	words := strings.Fields(strings.ReplaceAll(text, "PLACE", c.place))
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	secret := &corev1.Secret{}
	obj, ok := map[string]client.Object{"ConfigMap": &corev1.ConfigMap{}, "Pod": pod, "Secret": secret, "Shop": &golden.Shop{}}[words[0]]
	if !ok {
		c.t.Fatalf("the kind of %q is not known", text)
	}
	obj.SetNamespace(c.namespace)
	obj.SetName(words[1])
	if place, name, ok := strings.Cut(words[1], "/"); ok {
		obj.SetNamespace(place)
		obj.SetName(name)
	}
	labels, annotations := map[string]string{}, map[string]string{}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case ".type":
			secret.Type = corev1.SecretType(value)
		case ".node":
			pod.Spec.NodeName = value
		case "controlled", "owned", "foreign":
			own(obj, target, key)
		default:
			if note, ok := strings.CutPrefix(key, "@"); ok {
				annotations[note] = value
			} else {
				labels[key] = value
			}
		}
	}
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	return obj
}

func own(obj, target client.Object, how string) {
	owner := metav1.OwnerReference{APIVersion: golden.GroupVersion.String(), Kind: "Shop", Name: target.GetName(), UID: target.GetUID()}
	if _, ok := target.(*golden.Region); ok {
		owner.Kind = "Region"
	}
	controller := how != "owned"
	owner.Controller = &controller
	if how == "foreign" {
		owner.UID = "uid-of-another"
	}
	obj.SetOwnerReferences(append(obj.GetOwnerReferences(), owner))
}

// read returns the names of the objects that the getter of a state returns, as namespace/name
// without the test's own namespace.
func (c *cluster) read(states any, state string) ([]string, error) {
	c.t.Helper()
	getter := reflect.ValueOf(states).MethodByName("Get" + strings.ToUpper(state[:1]) + state[1:])
	results := getter.Call([]reflect.Value{reflect.ValueOf(c.t.Context())})
	names := []string{}
	add := func(obj client.Object) {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), c.namespace+"/"), "/"))
	}
	switch found := results[0]; {
	case found.Kind() == reflect.Slice:
		for i := range found.Len() {
			add(found.Index(i).Addr().Interface().(client.Object))
		}
	case !found.IsNil():
		add(found.Interface().(client.Object))
	}
	err, _ := results[1].Interface().(error)
	return names, err
}
