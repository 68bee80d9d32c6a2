// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
	shopv1 "github.com/ctrlkit/ctrlkit/internal/gen/golden/apis/shop/v1"
)

var (
	plane       controlplanetest.Shared // etcd and API server only: there is no garbage collector
	installCRDs sync.Once
	errInstall  error
)

func TestMain(m *testing.M) {
	log.SetLogger(log.Log.WithSink(nil))
	os.Exit(plane.Main(m))
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, shopv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A cluster is the API server with a namespace for one test.
type cluster struct {
	t         *testing.T
	config    *rest.Config
	live      client.Client
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	config := rest.CopyConfig(plane.ForTest(t).Config())
	config.QPS, config.Burst = -1, -1
	installCRDs.Do(func() {
		_, errInstall = envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"testdata/crds"}})
	})
	if errInstall != nil {
		t.Fatal(errInstall)
	}
	live, err := client.New(config, client.Options{Scheme: newScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, config: config, live: live}
	c.namespace = c.newNamespace("test-")
	return c
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
	reader, err := cache.New(c.config, cache.Options{Scheme: c.live.Scheme(), Mapper: c.live.RESTMapper()})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, index := range indexes {
		if err := index(c.t.Context(), reader); err != nil {
			c.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- reader.Start(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("the cache ended: %v", err)
		}
	})
	if !reader.WaitForCacheSync(ctx) {
		c.t.Fatal("the cache was not filled")
	}
	return reader
}

// named is the metadata of an object in the cluster's namespace. Words like key=value are labels.
func (c *cluster) named(name string, labels ...string) metav1.ObjectMeta {
	return metaIn(c.namespace, name, labels...)
}

func metaIn(namespace, name string, labels ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		meta.Labels[key] = value
	}
	return meta
}

func secret(meta metav1.ObjectMeta) *corev1.Secret { return &corev1.Secret{ObjectMeta: meta} }

func secretOfType(meta metav1.ObjectMeta, kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta, Type: kind}
}

func configMap(meta metav1.ObjectMeta) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: meta} }

// ownedBy makes owner an owner of obj, but not its controller.
func ownedBy[T client.Object](owner client.Object, kind string, obj T) T {
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: shopv1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
	}})
	return obj
}

func controlledBy[T client.Object](owner client.Object, obj T) T {
	yes := true
	kind := "Shop"
	if _, ok := owner.(*shopv1.Region); ok {
		kind = "Region"
	}
	ownedBy(owner, kind, obj)
	owners := obj.GetOwnerReferences()
	owners[0].Controller = &yes
	obj.SetOwnerReferences(owners)
	return obj
}
