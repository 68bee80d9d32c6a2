// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A desk is an API server in memory, and engines that reconcile single objects without a
// controller.
type desk struct {
	t       *testing.T
	client  client.Client
	calls   *calls
	engines map[string]*step.Engine[*User] // by the kind of their reconciler
	n       int
}

// newDesk returns a desk with a namespace "prod".
func newDesk(t *testing.T) *desk {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	server := apiserver.New(apiserver.Options{})
	d := &desk{t: t, calls: &calls{}, engines: map[string]*step.Engine[*User]{}}
	d.must(server.Install(userKind.Definition()))
	var err error
	d.client, err = client.New(server.Config(), client.Options{Scheme: scheme})
	d.must(err)
	d.must(d.client.Create(t.Context(), prod()))
	everything := newRecorder()
	everything.calls = d.calls
	for name, funcs := range map[string]external.Funcs[*User]{"full": everything.funcs(), "plain": everything.required(), "checking": everything.checking()} {
		funcs.Operator = "us"
		d.engines[name], err = step.New(step.Options[*User]{Name: "users", Client: d.client, APIReader: d.client}, external.Simple("User", funcs))
		d.must(err)
	}
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// run makes an object that is as a cell says, and reconciles it once.
func (d *desk) run(c cell) result {
	d.t.Helper()
	d.n++
	obj := user("prod", fmt.Sprintf("u-%d", d.n))
	obj.Annotations = map[string]string{policy.ReconcileAnnotation: c.reconcile, policy.ReclaimAnnotation: c.reclaim, policy.AllowAnnotation: c.allow}
	if c.state != "new" {
		obj.Finalizers = []string{finalizer}
	}
	if strings.HasPrefix(c.state, "claimed") {
		obj.Annotations[operatorAnnotation] = "us"
		if c.reconciler != "plain" {
			obj.Annotations[claimed] = "app"
		}
	}
	d.must(d.client.Create(d.t.Context(), obj))
	if strings.HasSuffix(c.state, "deleted") {
		d.must(d.client.Delete(d.t.Context(), obj))
	}
	key := client.ObjectKeyFromObject(obj)
	_, err := d.engines[c.reconciler].Reconcile(log.IntoContext(context.WithoutCancel(d.t.Context()), logr.Discard()), ctrl.Request{NamespacedName: key})
	r := result{calls: d.calls.take()}
	got := &User{}
	if d.client.Get(d.t.Context(), key, got) != nil {
		return r
	}
	r.there, r.finalizer = true, slices.Contains(got.Finalizers, finalizer)
	r.claimed = got.Annotations[operatorAnnotation] == "us" && (c.reconciler == "plain" || got.Annotations[claimed] == "app")
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
