// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
)

// naming is an operator that notes whom it reconciles.
func naming() *operator {
	o := &operator{recorder: newRecorder(), skipUnchanged: true}
	o.create = func(_ context.Context, req *request) error {
		o.note(client.ObjectKeyFromObject(req.Object).String())
		return nil
	}
	return o
}

// A request of a namespace reconciles the idle objects in it, and no others. What is no policy, and
// a request that is removed, reconcile nothing.
func TestChangesOfANamespace(t *testing.T) {
	for name, of := range map[string]map[string]cache.Config{"all namespaces are cached": nil, "some are": {"prod": {}, "other": {}}} {
		onCluster(t, name, func(t *testing.T, c *cluster) {
			c.must(c.user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
			c.must(c.user.Create(t.Context(), user("other", "b")))
			o := naming()
			o.namespaces = of
			c.start(o)
			c.create()
			if took := o.take(); !strings.Contains(took, "other/b") || !strings.Contains(took, "prod/a") {
				t.Errorf("calls %s", took)
			}
			for range 3 {
				_, err := o.engine.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.get())})
				c.must(err)
			}
			o.take() // it has compared once
			_, err := o.engine.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.get())})
			c.must(err)
			equal(t, "calls while it is idle", o.take(), "")
			for _, change := range []struct{ key, value, want string }{
				{policy.ReconcileNowAnnotation, "1", "Claim CreateOrUpdate prod/a"},
				{policy.ReconcileNowAnnotation, "2", "Claim CreateOrUpdate prod/a"},
				{policy.ReconcileNowAnnotation, "", ""},
				{"example.com/other", "changed", ""},
			} {
				c.annotate(prod(), change.key, change.value)
				if took := o.take(); !strings.HasPrefix(took, change.want) || change.want == "" && took != "" || strings.Contains(took, "other/b") {
					t.Errorf("%+v: calls %q", change, took)
				}
			}
		})
	}
}

// What has changed while the operator was down holds from its start on.
func TestChangedWhileDown(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.create()
		for value, want := range map[string]string{"skip": "False Skipped", "": "True Managed"} {
			c.annotate(prod(), policy.ReconcileAnnotation, value)
			o := c.start(naming())
			equal(t, value, describe(c.get(), "Managed"), want)
			o.stop()
		}
	})
}

// An object whose namespace the cache does not have yet is reconciled as soon as it does, not after
// a backoff.
func TestNamespaceAppears(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := c.start(naming())
		c.must(c.user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}))
		c.must(c.user.Create(t.Context(), user("new", "d")))
		pass()
		if took := o.take(); !strings.Contains(took, "new/d") {
			t.Errorf("calls %q", took)
		}
	})
}

// refusing is a reader without permissions.
type refusing struct{ client.Reader }

var errRefused = errors.New("forbidden")

func (refusing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errRefused
}

// A namespace that could not be read is not one without annotations, unless it is ignored.
func TestUnreadNamespace(t *testing.T) {
	ignored := policy.Defaults{IgnoreNamespaces: true}
	says := user("prod", "a")
	says.Annotations = map[string]string{policy.ReconcileAnnotation: "manage"}
	for _, tt := range []struct {
		name     string
		obj      client.Object
		defaults policy.Defaults
		want     error
	}{
		{"of an object", user("prod", "a"), policy.Defaults{}, errRefused},
		{"of one that says itself what is done", says, policy.Defaults{}, errRefused},
		{"ignored", says, ignored, nil},
		{"of a cluster-scoped object", user("", "n"), policy.Defaults{}, nil},
	} {
		decision, err := external.ResolvePolicy(t.Context(), refusing{}, tt.obj, tt.defaults)
		if !errors.Is(err, tt.want) || tt.want != nil && !strings.Contains(err.Error(), "reading namespace prod") {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if allowed := err == nil; decision.Allows(policy.AllVerbs) != allowed || decision.Allows(policy.VerbCreate) != allowed || (decision.OnDeletion() != policy.DeletionBlocked) != allowed {
			t.Errorf("%s: %v is allowed", tt.name, decision)
		}
	}
	if got := external.PolicyWatches(ignored); got != nil {
		t.Errorf("watches %v", got)
	}
}
