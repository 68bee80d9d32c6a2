// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package exampletest is what the tests of the examples have in common: the simulation of an
// operator with faults, and an operator on a real control plane, with the permissions of its role
// and no others.
package exampletest

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

var pairs = flag.Int("pairs", 50, "run so many `pairs` of faults")

// Simulate runs an operator with faults. Without -sim.shard it runs a sample of them.
func Simulate(t *testing.T, w sim.Workload, options ...sim.Option) {
	t.Helper()
	rings.Test(t, "takes seconds")
	sim.Run(t, w, append(options, sim.WithPairs(*pairs), sim.WithSample(10))...)
}

// NewScheme returns a scheme with the kinds of Kubernetes and those of an example.
func NewScheme(t testing.TB, add func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	Must(t, errors.Join(clientgoscheme.AddToScheme(scheme), add(scheme)))
	return scheme
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A Cluster is a namespace of a real control plane, and a client of it as users have it.
type Cluster struct {
	client.WithWatch
	Namespace string

	config *rest.Config
}

// NewCluster returns a new namespace, which is deleted when the test ends. It applies the role of
// the operator, and other files.
func NewCluster(t *testing.T, shared *ctrlkittest.SharedControlPlane, scheme *runtime.Scheme, files ...string) *Cluster {
	t.Helper()
	rings.Test(t, "starts a control plane")
	config := shared.ForTest(t).Config()
	user, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	Must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "example-"}}
	Must(t, user.Create(t.Context(), namespace))
	t.Cleanup(func() { Must(t, client.IgnoreNotFound(user.Delete(context.WithoutCancel(t.Context()), namespace))) })
	c := &Cluster{WithWatch: user, Namespace: namespace.Name, config: config}
	c.Apply(t, append([]string{"config/rbac/operator.yaml", "config/rbac/role.yaml"}, files...)...)
	return c
}

// Apply creates what is described in files, unless it exists. What is in the namespace default
// there is put into that of the cluster.
func (c *Cluster) Apply(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		content, err := os.Open(file)
		Must(t, err)
		defer content.Close() //nolint:errcheck // only read from
		for documents := yaml.NewYAMLOrJSONDecoder(content, 4096); ; {
			obj := &unstructured.Unstructured{}
			if err := documents.Decode(obj); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if obj.GetNamespace() == metav1.NamespaceDefault {
				obj.SetNamespace(c.Namespace)
			}
			if err := c.Add(t.Context(), obj); client.IgnoreAlreadyExists(err) != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
}

// Add creates an object as soon as the API server knows its kind. One with a mutating policy for a
// kind answers 503 until it has read the schema of the kind, some seconds after its definition.
func (c *Cluster) Add(ctx context.Context, obj client.Object) error {
	unknown := func(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsServiceUnavailable(err) }
	return retry.OnError(wait.Backoff{Duration: 100 * time.Millisecond, Steps: 100}, unknown, func() error { return c.Create(ctx, obj) })
}

// Patch merges a change into an object, as a user does.
func (c *Cluster) Patch(t *testing.T, obj client.Object, change string) {
	t.Helper()
	Must(t, c.WithWatch.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(change)), client.FieldOwner("by-hand")))
}

// In returns the name of an object in the namespace of the cluster.
func (c *Cluster) In(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: name}
}

// Operator returns what the manager of an operator is made with, which is the operator of the
// namespace alone, and may do what its role says: that of the ServiceAccount <name>-operator.
func (c *Cluster) Operator(t *testing.T, name string) (*rest.Config, ctrl.Options) {
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = "system:serviceaccount:" + name + "-system:" + name + "-operator"
	options := ctrl.Options{Logger: testr.NewWithOptions(t, testr.Options{LogTimestamp: true})}
	options.Metrics.BindAddress = "0"
	options.Cache.DefaultNamespaces = map[string]cache.Config{c.Namespace: {}}
	options.Controller.SkipNameValidation = new(true) // another test may run it, too
	return config, options
}

// Run runs an operator until stop is called, at the latest when the test ends.
func Run(t *testing.T, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the operator ended: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Await returns the object with a name as soon as it is as wanted.
func Await[T client.Object](t *testing.T, c *Cluster, name string, done func(T) bool) T {
	t.Helper()
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is its type
	obj.SetNamespace(c.Namespace)
	obj.SetName(name)
	return AwaitObject(t, c, obj, done)
}

// AwaitObject returns an object as soon as it is as wanted.
func AwaitObject[T client.Object](t *testing.T, c *Cluster, obj T, done func(T) bool) T {
	t.Helper()
	last := obj
	for event := range c.Events(t, obj, "") {
		now, ok := event.Object.(T)
		if last = now; ok && event.Type != watch.Deleted && done(now) {
			return now
		}
	}
	t.Fatalf("%T %s is not as wanted: %+v", obj, obj.GetName(), last)
	return last
}

// Gone returns as soon as an object does not exist any more.
func (c *Cluster) Gone(t *testing.T, obj client.Object) {
	t.Helper()
	now := obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), now); apierrors.IsNotFound(err) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	for event := range c.Events(t, now, now.GetResourceVersion()) {
		if event.Type == watch.Deleted {
			return
		}
	}
	t.Fatalf("%T %s still exists", obj, obj.GetName())
}

// Events returns what happens to the object with the kind and the name of obj, within a minute.
// From is the resource version after which it begins; without one it begins with the object as it is.
func (c *Cluster) Events(t *testing.T, obj client.Object, from string) <-chan watch.Event {
	t.Helper()
	gvk, err := c.GroupVersionKindFor(obj)
	Must(t, err)
	gvk.Kind += "List"
	var list client.ObjectList = &unstructured.UnstructuredList{}
	if typed, err := c.Scheme().New(gvk); err == nil {
		list = typed.(client.ObjectList) //nolint:errcheck // a list is one
	}
	list.GetObjectKind().SetGroupVersionKind(gvk)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	w, err := c.Watch(ctx, list, client.InNamespace(obj.GetNamespace()), &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", obj.GetName()), Raw: &metav1.ListOptions{ResourceVersion: from},
	})
	Must(t, err)
	t.Cleanup(w.Stop)
	return w.ResultChan()
}

// Reason returns the reason of a condition, if the condition is about the present spec. Ready has
// one only if it is true.
func Reason(obj client.Object, kind string) string {
	conditions, _ := condition.Of(obj) // without any there is no reason
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.ObservedGeneration != obj.GetGeneration() || kind == condition.Ready && c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason
}

// Ready reports whether an object is ready.
func Ready[T client.Object](obj T) bool { return Reason(obj, condition.Ready) == condition.ReasonReady }
