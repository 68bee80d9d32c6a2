// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden"
	"github.com/ctrlkit/ctrlkit/state"
)

// views records what reconciles have seen: for each target the last view of one of its states.
type views struct {
	c       *cluster
	mu      sync.Mutex
	seen    map[reconcile.Request]string
	changed chan struct{} // closed and replaced at every reconcile
}

func (v *views) set(request reconcile.Request, view string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[request] = view
	close(v.changed)
	v.changed = make(chan struct{})
}

// wait returns when the last view of target is want. It does not poll: each reconcile wakes it.
func (v *views) wait(target client.Object, want string) {
	v.c.t.Helper()
	ctx, cancel := context.WithTimeout(v.c.t.Context(), 10*time.Second)
	defer cancel()
	for {
		v.mu.Lock()
		view, changed := v.seen[reconcile.Request{NamespacedName: client.ObjectKeyFromObject(target)}], v.changed
		v.mu.Unlock()
		if view == want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			v.c.t.Fatalf("%s sees %q, and is not reconciled to see %q", target.GetName(), view, want)
		}
	}
}

// A manager is what is generated for a kind.
type manager struct {
	index     func(context.Context, client.FieldIndexer) error
	setup     func(ctrl.Manager) *ctrl.Builder
	newObject func() client.Object
	newStates func(client.Reader, client.Object) any
	options   ctrl.Options // the limits of its cache
}

var shops = manager{
	index: golden.IndexShops,
	setup: func(m ctrl.Manager) *ctrl.Builder {
		return golden.WatchShops(ctrl.NewControllerManagedBy(m), m.GetClient())
	},
	newObject: func() client.Object { return &golden.Shop{} },
	newStates: func(r client.Reader, obj client.Object) any { return golden.NewShopsState(r, obj.(*golden.Shop)) },
}

var regions = manager{
	index: golden.IndexRegions,
	setup: func(m ctrl.Manager) *ctrl.Builder {
		return golden.WatchRegions(ctrl.NewControllerManagedBy(m), m.GetCache())
	},
	newObject: func() client.Object { return &golden.Region{} },
	newStates: func(r client.Reader, obj client.Object) any { return golden.NewRegionsState(r, obj.(*golden.Region)) },
}

// watch starts a controller that reads only one of the states. The test changes objects of that
// state only, so that every reconcile has its cause in that state.
func (c *cluster) watch(m manager, name string) *views {
	c.t.Helper()
	yes := true
	mgr, err := ctrl.NewManager(c.config, ctrl.Options{
		Cache:      m.options.Cache,
		Scheme:     c.live.Scheme(),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	seen := &views{c: c, seen: map[reconcile.Request]string{}, changed: make(chan struct{})}
	reconciler := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		target := m.newObject()
		if err := mgr.GetClient().Get(ctx, request.NamespacedName, target); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		seen.set(request, view(c.read(m.newStates(mgr.GetClient(), target), name)))
		return reconcile.Result{}, nil
	})
	if err := errors.Join(m.index(c.t.Context(), mgr.GetFieldIndexer()), m.setup(mgr).Complete(reconciler)); err != nil {
		c.t.Fatal(err)
	}
	c.start(mgr.Start)
	return seen
}

// view returns what a getter returned as one text.
func view(names []string, err error) string {
	switch {
	case errors.As(err, new(*state.NotOwnedError)):
		return "not owned"
	case errors.As(err, new(*state.MismatchError)):
		return "mismatch"
	case errors.As(err, new(*state.SeveralError)):
		return "several"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(names)
}

// TestWatch changes objects, and waits until the target has seen that. A change is the text of an
// object that is created or given other labels and owners, or of one that is deleted, after a minus
// sign.
func TestWatch(t *testing.T) {
	for _, test := range []struct {
		name, state string
		changes     [][2]string // with the view that is waited for
	}{
		{"a single object by name", "password", [][2]string{
			{"", "[]"}, {"Secret password", "[password]"}, {"-Secret password", "[]"},
		}},
		{"labels come and go", "byLabel", [][2]string{
			{"Secret a shop=other", "[]"}, {"Secret a shop=shop", "[a]"}, {"Secret a", "[]"},
		}},
		{"a field", "byField", [][2]string{
			{"", "[]"}, {"Secret a .type=example.com/g controlled", "[a]"}, {"Secret b .type=example.com/g", "several"},
			{"-Secret a", "not owned"}, {"-Secret b", "[]"},
		}},
		{"a single object that is owned by another one, or does not match", "shared", [][2]string{
			{"Secret shop-shared shop=shop .type=example.com/g", "not owned"}, {"-Secret shop-shared", "[]"},
			{"Secret shop-shared shop=shop .type=example.com/g owned", "[shop-shared]"},
			{"Secret shop-shared shop=other .type=example.com/g owned", "mismatch"},
			{"Secret shop-shared shop=shop .type=example.com/g", "not owned"},
		}},
		{"operators of labels", "byOperators", [][2]string{
			{"ConfigMap a tier=silver", "[a]"}, {"ConfigMap a tier=silver retired=", "[]"}, {"ConfigMap a tier=gold", "[a]"},
			{"ConfigMap a tier=gold shop=other", "[]"}, {"ConfigMap b tier=gold shop=shop", "[b]"}, {"-ConfigMap b", "[]"},
		}},
		{"operators of labels without references", "byLiterals", [][2]string{
			{"ConfigMap a tier=iron shop=x", "[a]"}, {"ConfigMap a tier=gold shop=x", "[]"}, {"ConfigMap b tier=steel shop=", "[b]"},
			{"ConfigMap b tier=steel", "[]"},
		}},
		{"annotations", "annotated", [][2]string{
			{"", "[]"}, {"ConfigMap a shop=shop @note=shop", "[a]"}, {"ConfigMap a shop=shop @note=shop @hidden=", "[]"},
			{"ConfigMap a shop=shop @note=shop", "[a]"}, {"ConfigMap a shop=shop", "[]"},
		}},
		{"a single object with other annotations", "namedAnnotated", [][2]string{
			{"Secret shop-noted @note=shop", "[shop-noted]"}, {"Secret shop-noted @note=x", "mismatch"},
			{"Secret shop-noted @note=shop tier=iron", "mismatch"}, {"Secret shop-noted @note=shop tier=", "[shop-noted]"},
		}},
		{"another namespace", "pointers", [][2]string{{"", "[]"}, {"ConfigMap PLACE/far", "[PLACE/far]"}}},
		{"the target's own kind", "siblings", [][2]string{
			{"", "[]"}, {"Shop sibling group=g", "[sibling]"}, {"-Shop sibling", "[]"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			target := c.shop("shop")
			c.create(target)
			seen := c.watch(shops, test.state)
			for _, change := range test.changes {
				c.change(target, change[0])
				seen.wait(target, strings.ReplaceAll(change[1], "PLACE", c.place))
			}
		})
	}
}

// change makes a change of [TestWatch].
func (c *cluster) change(target client.Object, text string) {
	c.t.Helper()
	if text == "" {
		return
	}
	text, remove := strings.CutPrefix(text, "-")
	obj := c.object(target, text)
	var err error
	existing := obj.DeepCopyObject().(client.Object)
	switch get := c.live.Get(c.t.Context(), client.ObjectKeyFromObject(obj), existing); {
	case remove:
		err = c.live.Delete(c.t.Context(), obj)
	case get != nil:
		err = c.live.Create(c.t.Context(), obj)
	default:
		existing.SetLabels(obj.GetLabels())
		existing.SetAnnotations(obj.GetAnnotations())
		existing.SetOwnerReferences(obj.GetOwnerReferences())
		err = c.live.Update(c.t.Context(), existing)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func TestWatchOfAClusterScopedTarget(t *testing.T) {
	c := newCluster(t)
	region := newRegion(c)
	seen := c.watch(regions, "shops")
	seen.wait(region, "[]")
	label := " region=" + region.Name
	c.change(region, "Shop shop controlled"+label)
	seen.wait(region, "[shop]")
	c.change(region, "Shop shop"+label)
	seen.wait(region, "[]")
}

// TestWatchAnOptionalReference has a target that selects nothing until its reference is set.
func TestWatchAnOptionalReference(t *testing.T) {
	c := newCluster(t)
	target := c.shop("shop")
	target.Spec.SecretName = ""
	c.create(target)
	seen := c.watch(shops, "optional")
	seen.wait(target, "[]")
	target.Spec.SecretName = "password"
	if err := c.live.Update(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	c.change(target, "Secret password tier=gold")
	seen.wait(target, "[password]")
	c.change(target, "Secret password tier=iron")
	seen.wait(target, "mismatch")
}

// TestWatchAnUnresolvedTarget has a target whose selectors cannot be resolved: that must not affect
// other targets.
func TestWatchAnUnresolvedTarget(t *testing.T) {
	c := newCluster(t)
	unresolved, resolved := c.shop("unresolved"), c.shop("resolved")
	ref := unresolved.Spec.Ref
	unresolved.Spec.Ref = nil
	c.create(unresolved, resolved)
	seen := c.watch(shops, "pointers")
	seen.wait(unresolved, "target.Spec.Ref is nil")
	seen.wait(resolved, "[]")
	c.change(resolved, "ConfigMap PLACE/far")
	seen.wait(resolved, "["+c.place+"/far]")
	unresolved.Spec.Ref = ref
	if err := c.live.Update(t.Context(), unresolved); err != nil {
		t.Fatal(err)
	}
	seen.wait(unresolved, "["+c.place+"/far]")
}
