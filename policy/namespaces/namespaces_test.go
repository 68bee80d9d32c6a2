// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package namespaces_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/policy/namespaces"
)

const (
	managed = "prod/a: Managed, prod/b: Managed"
	skipped = "prod/a: Skipped, prod/b: Skipped"
)

// Adding, changing and removing an annotation of a namespace reconciles the objects in it at once,
// although they are idle, and no others.
func TestAnnotationsOfANamespace(t *testing.T) {
	for name, of := range map[string]map[string]cache.Config{"all namespaces are cached": nil, "some are": {"prod": {}, "other": {}}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				c.start(policy.Defaults{}, of)
				c.want("start", "other/c: Managed, "+managed)
				prod := namespace("prod")
				c.annotate(prod, map[string]any{policy.ReconcileAnnotation: "skip"})
				c.want("added", skipped)
				if got := c.causes["prod/a"]; got != "Namespace prod updated" {
					t.Errorf("the cause is %q", got)
				}
				c.annotate(prod, map[string]any{policy.ReconcileAnnotation: "slip"})
				c.want("changed", "prod/a: InvalidPolicy, prod/b: InvalidPolicy")
				c.annotate(prod, map[string]any{policy.ReclaimAnnotation: "retain"})
				c.want("another one added", "prod/a: InvalidPolicy, prod/b: InvalidPolicy")
				c.annotate(prod, map[string]any{policy.ReconcileAnnotation: nil, policy.ReclaimAnnotation: nil})
				c.want("removed", managed)
				c.annotate(prod, map[string]any{policy.Domain + "/reconcil": "skip"})
				c.want("misspelled", "prod/a: InvalidPolicy, prod/b: InvalidPolicy")
				c.annotate(prod, map[string]any{policy.Domain + "/reconcil": nil})
				c.want("removed", managed)
				c.annotate(prod, map[string]any{"example.com/other": "changed"})
				c.want("what is no policy changed", "")
				c.annotate(prod, map[string]any{policy.ReconcileNowAnnotation: "1"})
				c.want("a request", managed)
				c.annotate(prod, map[string]any{policy.ReconcileNowAnnotation: "2"})
				c.want("another request", managed)
				c.annotate(prod, map[string]any{policy.ReconcileNowAnnotation: nil})
				c.want("a request removed", "")
			})
		})
	}
}

// Adding, changing and removing an annotation of an object reconciles it.
func TestAnnotationsOfAnObject(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start(policy.Defaults{}, nil)
		c.take()
		for _, step := range []struct {
			value any
			want  string
		}{{"skip", "prod/a: Skipped"}, {"manage", "prod/a: Managed"}, {"", "prod/a: InvalidPolicy"}, {nil, "prod/a: Managed"}} {
			c.annotate(named("prod/a"), map[string]any{policy.ReconcileAnnotation: step.value})
			c.want("the object", step.want)
		}
		c.annotate(named("prod/a"), map[string]any{policy.ReconcileNowAnnotation: "1"})
		c.want("a request", "prod/a: Managed")
	})
}

// What has changed while the operator was down holds from its start on.
func TestChangedWhileDown(t *testing.T) {
	inCluster(t, func(c *cluster) {
		_, stop := c.start(policy.Defaults{}, nil)
		c.take()
		stop()
		c.annotate(namespace("prod"), map[string]any{policy.ReconcileAnnotation: "skip"})
		c.want("down", "")
		_, stop = c.start(policy.Defaults{}, nil)
		c.want("up", "other/c: Managed, "+skipped)
		stop()
		c.annotate(namespace("prod"), map[string]any{policy.ReconcileAnnotation: nil})
		c.start(policy.Defaults{}, nil)
		c.want("up again", "other/c: Managed, "+managed)
	})
}

// An object that is idle is not resolved again, and costs no read, until its namespace changes; a
// change of what is no policy costs it one more comparison.
func TestIdleObjects(t *testing.T) {
	inCluster(t, func(c *cluster) {
		engine, _ := c.start(policy.Defaults{}, nil)
		reconcile := func() {
			t.Helper()
			_, err := engine.Reconcile(t.Context(), ctrlRequest("prod/a"))
			c.must(err)
		}
		c.take()
		reconcile() // compares
		c.takeReads()
		for range 3 {
			if reconcile(); c.ended["prod/a"] != journal.ResultConverged || c.takeReads() > 0 {
				t.Fatalf("it is not idle: %s", c.ended["prod/a"])
			}
		}
		c.want("idle", "")
		c.annotate(namespace("prod"), map[string]any{policy.ReconcileAnnotation: "skip"})
		c.want("changed", skipped)
		c.annotate(namespace("prod"), map[string]any{"example.com/other": "changed"})
		c.want("changed in what is no policy", "")
		reconcile()
		c.want("for another reason", "prod/a: Skipped") // its input has another version
		reconcile()
		c.want("idle again", "")
	})
}

// An operator that may not read namespaces neither reads nor watches them.
func TestNamespacesIgnored(t *testing.T) {
	inCluster(t, func(c *cluster) {
		defaults := policy.Defaults{Namespaces: policy.NamespacesIgnored}
		c.start(defaults, nil)
		c.take()
		c.annotate(namespace("prod"), map[string]any{policy.ReconcileAnnotation: "skip"})
		c.want("annotated", "")
		if got := namespaces.Watches(defaults); got != nil {
			t.Errorf("watches %v", got)
		}
		decision, err := namespaces.Resolve(t.Context(), refusing{}, named("prod/a"), defaults)
		if err != nil || decision.Reason() != policy.ReasonManaged {
			t.Errorf("%s with error %v", decision.Reason(), err)
		}
	})
}

// refusing is a reader without permissions.
type refusing struct{ client.Reader }

var errRefused = errors.New("forbidden")

func (refusing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errRefused
}

// A namespace that could not be read is not one without annotations.
func TestUnreadNamespace(t *testing.T) {
	for _, obj := range []client.Object{
		named("prod/a"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "a", Annotations: map[string]string{policy.ReconcileAnnotation: "manage"}}},
	} {
		decision, err := namespaces.Resolve(t.Context(), refusing{}, obj, policy.Defaults{})
		if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "reading namespace prod") {
			t.Errorf("error %v", err)
		}
		if decision.Allows(policy.VerbCreate) || decision.OnDeletion() != policy.DeletionBlocked {
			t.Error("the decision that comes with an error allows something")
		}
	}
	decision, err := namespaces.Resolve(t.Context(), refusing{}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, policy.Defaults{})
	if err != nil || !decision.Allows(policy.AllVerbs) {
		t.Errorf("a cluster-scoped object: %v, error %v", decision, err)
	}
}

// An object whose namespace the cache does not have yet is resolved as soon as it does, not after a
// backoff.
func TestNamespaceAppears(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start(policy.Defaults{}, nil)
		c.take()
		c.must(c.user.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "new", Annotations: map[string]string{policy.ReconcileAnnotation: "skip"},
		}}))
		c.must(c.user.Create(t.Context(), named("new/d")))
		pass()
		if got := strings.TrimSuffix(c.take(), ", new/d: error"); got != "new/d: Skipped" { // an error, if it was faster than the watch
			t.Errorf("resolved %q", got)
		}
	})
}
