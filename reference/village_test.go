// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Yard is referred to by Barns.
type Yard = testkind.Object[struct{}, testkind.Status]

// A Barn stands in a Yard.
type Barn = testkind.Object[BarnSpec, testkind.Status]

type BarnSpec struct {
	Yard      string            `json:"yard,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Yards are for a reference to several.
	Yards []reference.Target `json:"yards,omitempty"`
	// Copied is set by Options.Copy.
	Copied string `json:"copied,omitempty"`
}

var (
	yardKind = testkind.Of[struct{}, testkind.Status]("Yard")
	barnKind = testkind.Of[BarnSpec, testkind.Status]("Barn")
	scheme   = testkind.Scheme(yardKind, barnKind)
)

func yard(name string, labels ...string) *Yard {
	obj := &Yard{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for i := 0; i < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&obj.ObjectMeta, labels[i], labels[i+1])
	}
	return obj
}

func barn(name string, spec BarnSpec) *Barn {
	return &Barn{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

type yardReference = reference.Reference[*Barn, *Yard]

func newYardReference(change ...func(*reference.Options[*Barn, *Yard])) *yardReference {
	options := reference.Options[*Barn, *Yard]{
		Name: "yard",
		Target: func(obj *Barn) reference.Target {
			return reference.Target{Name: obj.Spec.Yard, Namespace: obj.Spec.Namespace, Labels: obj.Spec.Labels}
		},
	}
	for _, f := range change {
		f(&options)
	}
	return reference.New(options)
}

// A village is an API server in memory, with engines of Yards and Barns whose objects are
// reconciled one at a time. The resources outside the cluster are names.
type village struct {
	t      *testing.T
	client client.Client
	yardOf *yardReference
	yards  *step.Engine[*Yard]
	barns  *step.Engine[*Barn]
	stands map[string]string // where each barn stands
	broken map[string]bool   // yards that can't be used
	lags   client.Reader     // what the cache shows of Yards; nil if it does not lag
	writes int
	// created counts the objects; each makes the server's clock a second faster, so that age orders them
	// in every run.
	created atomic.Int64
	stuck   bool // no update has an effect
	// deleting gets where a barn stands whose resource is deleted; it may be nil.
	deleting func(in string)
}

func newVillage(t *testing.T, change ...func(*reference.Options[*Barn, *Yard])) *village {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	v := &village{t: t, stands: map[string]string{}, broken: map[string]bool{}}
	server := apiserver.New(apiserver.Options{Now: func() time.Time {
		return time.Now().Add(time.Duration(v.created.Load()) * time.Second)
	}})
	v.must(server.Install(yardKind.Definition()))
	v.must(server.Install(barnKind.Definition()))
	var err error
	v.client, err = client.New(server.Config(), client.Options{Scheme: scheme})
	v.must(err)
	for _, name := range []string{"default", "other"} {
		v.must(client.IgnoreAlreadyExists(v.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	v.restart(change...)
	return v
}

// restart replaces the operator.
func (v *village) restart(change ...func(*reference.Options[*Barn, *Yard])) {
	v.t.Helper()
	v.yardOf = newYardReference(change...)
	ignored := policy.Defaults{IgnoreNamespaces: true}
	var err error
	v.yards, err = step.New(step.Options[*Yard]{Name: "yards", Client: counting{v.client, v}, APIReader: v.client},
		external.New("Yard", external.Connector[*Yard](desk[*Yard]{v, func(context.Context, *step.Request[*Yard]) (string, error) { return "", nil }}), external.Options[*Yard]{
			Identity: external.ByName(func(obj *Yard) (string, error) { return obj.Name, nil }), Policy: ignored,
		}), reference.Protect(v.yardOf))
	v.must(err)
	v.barns, err = step.New(step.Options[*Barn]{Name: "barns", Client: counting{v.client, v}, APIReader: v.client},
		external.New("Barn", external.Connector[*Barn](desk[*Barn]{v, v.yardOfBarn}), external.Options[*Barn]{
			Identity: external.ByName(func(obj *Barn) (string, error) { return obj.Name, nil }), Policy: ignored,
			References: []reference.Of[*Barn]{v.yardOf},
		}))
	v.must(err)
	for _, w := range reference.Protect(v.yardOf).Watches() { // no controller does it
		if w.Object == nil {
			v.t.Fatal("a watch of nothing")
		}
	}
}

// counting counts writes, and shows Yards as the cache has them.
type counting struct {
	client.Client
	v *village
}

func (c counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if _, ok := obj.(*Yard); ok && c.v.lags != nil {
		return c.v.lags.Get(ctx, key, obj, options...)
	}
	return c.Client.Get(ctx, key, obj, options...)
}

func (c counting) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.v.writes++
	return c.Client.Patch(ctx, obj, patch, options...)
}

// A desk keeps the resources of a kind. In returns where that of an object stands; a yard stands in
// nothing.
type desk[T client.Object] struct {
	v  *village
	in func(ctx context.Context, req *step.Request[T]) (string, error)
}

func (d desk[T]) Connect(ctx context.Context, req *step.Request[T]) (external.Client[T], error) {
	in, err := d.in(ctx, req)
	return deskClient[T]{d.v, in}, err
}

type deskClient[T client.Object] struct {
	v  *village
	in string
}

func (c deskClient[T]) Observe(_ context.Context, obj T, id string) (external.Observation, error) {
	seen := external.Observation{State: external.UpToDate, Owner: external.OwnerOf(obj)}
	if in, ok := c.v.stands[id]; !ok {
		seen.State = external.Absent
	} else if in != c.in {
		seen.State, seen.Drift = external.Drifted, []string{"spec.yard"}
	} else if c.v.broken[id] {
		seen.Unavailable = "the gate is locked"
	}
	return seen, nil
}

func (c deskClient[T]) Create(_ context.Context, _ T, creation external.Creation) (string, error) {
	c.v.stands[creation.Name] = c.in
	return creation.Name, nil
}

func (c deskClient[T]) Update(_ context.Context, _ T, id string) error {
	if !c.v.stuck {
		c.v.stands[id] = c.in
	}
	return nil
}

func (c deskClient[T]) Delete(_ context.Context, _ T, id string) error {
	if c.v.deleting != nil {
		c.v.deleting(c.in)
	}
	for barn, in := range c.v.stands {
		if slices.Contains(strings.Split(in, "+"), id) {
			c.v.t.Errorf("%s is deleted, and barn %s stands in it", id, barn)
		}
	}
	delete(c.v.stands, id)
	return nil
}

// yardOfBarn returns the names of the yards that a barn stands in.
func (v *village) yardOfBarn(ctx context.Context, req *step.Request[*Barn]) (string, error) {
	if v.yardOf.Target != nil && v.yardOf.Target(req.Object).Name == "" && len(req.Object.Spec.Labels) == 0 {
		return "a field", nil
	}
	if v.yardOf.Target != nil && !v.yardOf.Target(req.Object).Optional {
		in, err := v.yardOf.Get(ctx, req)
		if err != nil {
			return "", err
		}
		return in.Name, nil
	}
	all, err := v.yardOf.All(ctx, req)
	var names []string
	for _, in := range all {
		names = append(names, in.Name)
	}
	return cmp.Or(strings.Join(names, "+"), "a field"), err
}

func (v *village) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// create creates objects, each a second younger than the one before.
func (v *village) create(all ...client.Object) {
	v.t.Helper()
	for _, obj := range all {
		v.created.Add(1)
		v.must(v.client.Create(v.t.Context(), obj))
		v.reconcile(obj)
	}
}

func (v *village) delete(all ...client.Object) {
	v.t.Helper()
	for _, obj := range all {
		v.must(v.client.Delete(v.t.Context(), obj))
		v.reconcile(obj)
	}
}

// reconcile reconciles objects until their versions do not change, each by itself.
func (v *village) reconcile(all ...client.Object) {
	v.t.Helper()
	for _, obj := range all {
		for version := "none"; v.exists(obj) && obj.GetResourceVersion() != version; {
			version = obj.GetResourceVersion()
			_ = v.once(obj)
		}
	}
}

// once reconciles an object once.
func (v *village) once(obj client.Object) error {
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
	var err error
	if _, ok := obj.(*Yard); ok {
		_, err = v.yards.Reconcile(v.t.Context(), req)
	} else {
		_, err = v.barns.Reconcile(v.t.Context(), req)
	}
	return err
}

// request returns that of a reconcile of a Barn.
func (v *village) request(of *Barn) *step.Request[*Barn] {
	return &step.Request[*Barn]{Object: of, Client: v.client, APIReader: v.client}
}

// exists reads an object again, and reports whether it is there.
func (v *village) exists(obj client.Object) bool {
	v.t.Helper()
	err := v.client.Get(v.t.Context(), client.ObjectKeyFromObject(obj), obj)
	v.must(client.IgnoreNotFound(err))
	return err == nil
}

// expect checks that a condition begins with a text: "False YardNotFound: message".
func (v *village) expect(obj client.Object, kind, begins string) {
	v.t.Helper()
	if !v.exists(obj) {
		v.t.Fatalf("%s is gone", obj.GetName())
	}
	all, err := condition.Of(obj)
	v.must(err)
	got := "none"
	for _, c := range all {
		if c.Type == kind {
			got = strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
		}
	}
	if !strings.HasPrefix(got, begins) {
		v.t.Errorf("%s of %s is %q, want %q", kind, obj.GetName(), got, begins)
	}
}

// uses returns what an object uses, by name.
func (v *village) uses(obj client.Object) string {
	v.t.Helper()
	v.exists(obj)
	var names []string
	for _, one := range strings.Fields(obj.GetAnnotations()[v.yardOf.Annotation()]) {
		names = append(names, cmp.Or(strings.Split(one+"//", "/")[1], one))
	}
	return strings.Join(names, " ")
}
