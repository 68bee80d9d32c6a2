// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shopv1 "github.com/ctrlkit/ctrlkit/internal/gen/golden/apis/shop/v1"
	regions "github.com/ctrlkit/ctrlkit/internal/gen/golden/cluster"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/selectors"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/values"
	"github.com/ctrlkit/ctrlkit/state"
)

// views records what reconciles have seen: for each target the last view of one of its states.
type views struct {
	mu      sync.Mutex
	seen    map[reconcile.Request]string
	changed chan struct{} // closed and replaced at every reconcile
}

func newViews() *views {
	return &views{seen: map[reconcile.Request]string{}, changed: make(chan struct{})}
}

func (v *views) set(request reconcile.Request, view string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[request] = view
	close(v.changed)
	v.changed = make(chan struct{})
}

// wait returns when the last view of target is want. It does not poll: each reconcile wakes it.
func (v *views) wait(t *testing.T, target client.Object, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
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
			t.Fatalf("%s sees %q, and is not reconciled to see %q", target.GetName(), view, want)
		}
	}
}

// manager starts a manager with the controller that setup makes.
func (c *cluster) manager(setup func(ctrl.Manager) error) {
	c.t.Helper()
	yes := true
	mgr, err := ctrl.NewManager(c.config, ctrl.Options{
		Scheme:     c.live.Scheme(),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("the manager ended: %v", err)
		}
	})
}

func (c *cluster) update(obj client.Object, change func()) {
	c.t.Helper()
	if err := c.live.Get(c.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		c.t.Fatal(err)
	}
	change()
	if err := c.live.Update(c.t.Context(), obj); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) remove(obj client.Object) {
	c.t.Helper()
	if err := c.live.Delete(c.t.Context(), obj); err != nil {
		c.t.Fatal(err)
	}
}

// view returns what a getter returned as one text.
func view(names []string, err error) string {
	if notOwned := (&state.NotOwnedError{}); errors.As(err, &notOwned) {
		return "not owned"
	}
	if mismatch := (&state.MismatchError{}); errors.As(err, &mismatch) {
		return "mismatch"
	}
	if several := (&state.SeveralError{}); errors.As(err, &several) {
		return "several"
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(names)
}

// watchSelectors starts a controller of Shops that reads only one of their states. The test changes
// objects of that state only, so that every reconcile has its cause in that state.
func watchSelectors(c *cluster, get func(*cluster, *selectors.SelectorsState) ([]string, error)) *views {
	seen := newViews()
	c.manager(func(mgr ctrl.Manager) error {
		if err := selectors.IndexSelectors(c.t.Context(), mgr.GetFieldIndexer()); err != nil {
			return err
		}
		return selectors.WatchSelectors(ctrl.NewControllerManagedBy(mgr), mgr.GetClient()).Complete(
			reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
				target := &shopv1.Shop{}
				if err := mgr.GetClient().Get(ctx, request.NamespacedName, target); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				seen.set(request, view(get(c, selectors.NewSelectorsState(mgr.GetClient(), target))))
				return reconcile.Result{}, nil
			}))
	})
	return seen
}

func TestWatchByName(t *testing.T) {
	c := newCluster(t)
	first := &shopv1.Shop{ObjectMeta: c.named("first"), Spec: shopv1.Spec{SecretName: "password", Place: "none"}}
	second := &shopv1.Shop{ObjectMeta: c.named("second"), Spec: shopv1.Spec{SecretName: "password", Place: "none"}}
	c.create(first, second)
	seen := watchSelectors(c, byName)
	seen.wait(t, first, "[]")
	seen.wait(t, second, "[]")

	password, another := secret(c.named("password")), secret(c.named("another"))
	c.create(password)
	seen.wait(t, first, "[password]")
	seen.wait(t, second, "[password]")
	c.remove(password)
	seen.wait(t, first, "[]")
	seen.wait(t, second, "[]")
	c.update(first, func() { first.Spec.SecretName = "another" })
	c.create(another)
	seen.wait(t, first, "[another]")
}

func TestWatchByLabelSeesLabelsComeAndGo(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{SecretName: "none", Place: "none"}}
	obj := secret(c.named("a", "shop=other"))
	c.create(target, obj)
	seen := watchSelectors(c, byLabel)
	seen.wait(t, target, "[]")
	c.update(obj, func() { obj.Labels["shop"] = "shop" })
	seen.wait(t, target, "[a]")
	c.update(obj, func() { delete(obj.Labels, "shop") })
	seen.wait(t, target, "[]")
}

func TestWatchByField(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{SecretName: "none", Place: "none", Group: "x"}}
	c.create(target)
	seen := watchSelectors(c, byField)
	seen.wait(t, target, "[]")
	a, b := secretOfType(c.named("a"), "example.com/x"), secretOfType(c.named("b"), "example.com/x")
	c.create(a)
	seen.wait(t, target, "[a]")
	c.create(b)
	seen.wait(t, target, "several")
	c.remove(a)
	seen.wait(t, target, "[b]")
}

func TestWatchOfASingleOwnedObjectSeesThatOfAnotherOwner(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{SecretName: "none", Place: "none"}}
	foreign := secret(c.named("shop-owned"))
	c.create(target, foreign)
	seen := watchSelectors(c, byNameOwned)
	seen.wait(t, target, "not owned")
	c.remove(foreign)
	seen.wait(t, target, "[]")
	ours := controlledBy(target, secret(c.named("shop-owned")))
	c.create(ours)
	seen.wait(t, target, "[shop-owned]")
	c.update(ours, func() { ours.OwnerReferences = nil })
	seen.wait(t, target, "not owned")
}

func TestWatchOfASingleNamedObjectSeesAMismatch(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{SecretName: "password", Place: "none"}}
	other := secret(c.named("password", "shop=other"))
	c.create(target, other)
	seen := watchSelectors(c, func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByNameAndLabel) })
	seen.wait(t, target, "mismatch")
	c.update(other, func() { other.Labels["shop"] = "shop" })
	seen.wait(t, target, "[password]")
	c.update(other, func() { delete(other.Labels, "shop") })
	seen.wait(t, target, "mismatch")
	c.remove(other)
	seen.wait(t, target, "[]")
}

func TestWatchAcrossNamespaces(t *testing.T) {
	c := newCluster(t)
	place := c.newNamespace("place-")
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{SecretName: "none", Place: place}}
	c.create(target)
	seen := watchSelectors(c, func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetInNamespace) })
	seen.wait(t, target, "[]")
	c.create(configMap(metaIn(place, "settings")))
	seen.wait(t, target, "["+place+"/settings]")
}

func TestWatchOfTheTargetsOwnKind(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{SecretName: "none", Place: "none", Group: "g"}}
	c.create(target)
	seen := watchSelectors(c, func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetSiblings) })
	seen.wait(t, target, "[]")
	sibling := &shopv1.Shop{ObjectMeta: c.named("sibling", "group=g"), Spec: shopv1.Spec{Place: "none", Group: "other"}}
	c.create(sibling)
	seen.wait(t, target, "[sibling]")
	c.remove(sibling)
	seen.wait(t, target, "[]")
}

func TestWatchOfAClusterScopedTarget(t *testing.T) {
	c := newCluster(t)
	region := &shopv1.Region{Spec: shopv1.Spec{Place: "none", Group: "group-" + c.namespace}}
	region.Name = "region-" + c.namespace
	c.create(region)
	seen := newViews()
	c.manager(func(mgr ctrl.Manager) error {
		if err := regions.IndexRegionManager(t.Context(), mgr.GetFieldIndexer()); err != nil {
			return err
		}
		return regions.WatchRegionManager(ctrl.NewControllerManagedBy(mgr), mgr.GetCache()).Complete(
			reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
				target := &shopv1.Region{}
				if err := mgr.GetClient().Get(ctx, request.NamespacedName, target); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				s := regions.NewRegionManagerState(mgr.GetClient(), target)
				seen.set(request, view(list(c, s.GetShops))+view(list(c, s.GetNamespaces)))
				return reconcile.Result{}, nil
			}))
	})
	seen.wait(t, region, "[][]")
	label := "region=" + region.Name
	shop := &shopv1.Shop{ObjectMeta: c.named("shop", label)}
	c.create(shop)
	c.update(shop, func() { controlledBy(region, shop) })
	seen.wait(t, region, "[shop][]")
	c.update(shop, func() { shop.OwnerReferences = nil })
	seen.wait(t, region, "[][]")
	labelled := &corev1.Namespace{ObjectMeta: metaIn("", "labelled-"+c.namespace, label)}
	c.create(labelled)
	seen.wait(t, region, "[]["+labelled.Name+"]")
}

// TestWatchAnUnresolvedTarget has a target whose selectors cannot be resolved: that must not affect
// other targets.
func TestWatchAnUnresolvedTarget(t *testing.T) {
	c := newCluster(t)
	tier := shopv1.Tier("gold")
	unresolved := &shopv1.Shop{ObjectMeta: c.named("unresolved")}
	resolved := &shopv1.Shop{ObjectMeta: c.named("resolved"), Spec: shopv1.Spec{TierRef: &tier}}
	c.create(unresolved, resolved)
	seen := newViews()
	c.manager(func(mgr ctrl.Manager) error {
		if err := values.IndexValues(t.Context(), mgr.GetFieldIndexer()); err != nil {
			return err
		}
		return values.WatchValues(ctrl.NewControllerManagedBy(mgr), mgr.GetClient()).Complete(
			reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
				target := &shopv1.Shop{}
				if err := mgr.GetClient().Get(ctx, request.NamespacedName, target); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				seen.set(request, view(one(c, values.NewValuesState(mgr.GetClient(), target).GetTexts)))
				return reconcile.Result{}, nil
			}))
	})
	seen.wait(t, unresolved, "target.Spec.TierRef is nil")
	seen.wait(t, resolved, "[]")
	c.create(configMap(c.named("text", "tier=gold", "hours=0-0")))
	seen.wait(t, resolved, "[text]")
	c.update(unresolved, func() { unresolved.Spec.TierRef = &tier })
	seen.wait(t, unresolved, "[text]")
}
