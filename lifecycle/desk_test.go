// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

// A desk is an API server in memory, and engines that reconcile single objects without a
// controller.
type desk struct {
	t       *testing.T
	client  client.Client
	calls   *calls
	engines map[string]*step.Engine[*User]
	spaces  map[string]bool
	n       int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	server := apiserver.New(apiserver.Options{})
	if err := server.Install(userKind.Definition()); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t: t, client: c, calls: &calls{}, engines: map[string]*step.Engine[*User]{}, spaces: map[string]bool{}}
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// engine returns an engine of a kind of reconciler, with these defaults.
func (d *desk) engine(reconciler string, defaults policy.Defaults) *step.Engine[*User] {
	d.t.Helper()
	key := fmt.Sprint(reconciler, defaults)
	if d.engines[key] == nil {
		options := lifecycle.Options{Operator: "us", Policy: defaults}
		everything := newFull()
		everything.calls = d.calls
		var s step.Step[*User]
		switch reconciler {
		case "full":
			s = lifecycle.New("User", everything, options)
		case "plain":
			s = lifecycle.New("User", &everything.plain, options)
		case "checking":
			s = lifecycle.New("User", checking{everything}, options)
		}
		e, err := step.New(step.Options[*User]{Name: "users", Client: d.client, APIReader: d.client}, s)
		d.must(err)
		d.engines[key] = e
	}
	return d.engines[key]
}

// namespace returns the name of a namespace with policies.
func (d *desk) namespace(policies map[string]string) string {
	d.t.Helper()
	name := "ns"
	for _, key := range slices.Sorted(maps.Keys(policies)) {
		name += "-" + key[len("policy.ctrlkit.dev/"):] + "-" + strings.NewReplacer(",", "-", "*", "all").Replace(policies[key])
	}
	if !d.spaces[name] {
		d.must(d.client.Create(d.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: policies}}))
		d.spaces[name] = true
	}
	return name
}

// annotations returns what the object (0) or the namespace (1) of a cell says.
func (c cell) annotations(level int) map[string]string {
	all := map[string]string{}
	for key, value := range map[string]string{"reconcile": c.reconcile[level], "reclaim": c.reclaim[level], "allow": c.allow[level]} {
		if value != absent {
			all["policy.ctrlkit.dev/"+key] = value
		}
	}
	return all
}

// run makes an object that is as a cell says, and reconciles it once.
func (d *desk) run(c cell, defaults policy.Defaults) result {
	d.t.Helper()
	d.n++
	obj := user(d.namespace(c.annotations(1)), fmt.Sprintf("u-%d", d.n))
	obj.Annotations = c.annotations(0)
	if c.state != "new" {
		obj.Finalizers = []string{finalizer}
	}
	if strings.HasPrefix(c.state, "claimed") {
		obj.Annotations["lifecycle.ctrlkit.dev/operator"] = "us"
		if c.reconciler != "plain" {
			obj.Annotations[claimed] = "app"
		}
	}
	d.must(d.client.Create(d.t.Context(), obj))
	if strings.HasSuffix(c.state, "deleted") {
		d.must(d.client.Delete(d.t.Context(), obj))
	}
	key := client.ObjectKeyFromObject(obj)
	_, err := d.engine(c.reconciler, defaults).Reconcile(log.IntoContext(context.WithoutCancel(d.t.Context()), logr.Discard()), ctrl.Request{NamespacedName: key})
	r := result{calls: d.calls.take()}
	got := &User{}
	if d.client.Get(d.t.Context(), key, got) != nil {
		return r
	}
	r.there, r.finalizer = true, slices.Contains(got.Finalizers, finalizer)
	r.claimed = got.Annotations["lifecycle.ctrlkit.dev/operator"] == "us" && (c.reconciler == "plain" || got.Annotations[claimed] == "app")
	r.managed, r.ready = describe(got, "Managed"), describe(got, "Ready")
	if (err != nil) != strings.HasPrefix(r.ready, "False") {
		d.t.Fatalf("%+v: Ready is %s, with error %v", c, r.ready, err)
	}
	return r
}

// describe returns the status and the reason of a condition.
func describe(obj *User, kind string) string {
	c := meta.FindStatusCondition(obj.Status.Conditions, kind)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}
