// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden"
)

// rulesOf returns the rules of the markers in the generated code of a manager.
func rulesOf(t *testing.T, manager string) []rbacv1.PolicyRule {
	t.Helper()
	code, err := os.ReadFile("zz_generated.shop.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(code), "// What "+manager+" reads,")
	before, _, _ := strings.Cut(after, "\ntype ")
	var rules []rbacv1.PolicyRule
	for line := range strings.Lines(before) {
		if rule, ok := permission.ParseMarker(line); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

// asReader returns a configuration for a user who may do what the generated rules of Fixed allow.
func (c *cluster) asReader() *rest.Config {
	c.t.Helper()
	user := "reader-" + c.place
	c.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rulesOf(c.t, "Fixed")}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

// TestSingleObjectsNeedNoMoreThanTheirNames runs a controller whose role has the generated rules.
// Its cache is limited by the generated function, and it sees its objects change.
func TestSingleObjectsNeedNoMoreThanTheirNames(t *testing.T) {
	c := newCluster(t)
	target := c.shop("shop")
	c.create(target)
	var options ctrl.Options
	if err := golden.CacheFixed(&options); err != nil {
		t.Fatal(err)
	}
	limited := *c
	limited.config = c.asReader()
	fixed := manager{
		index: golden.IndexFixed,
		setup: func(m ctrl.Manager) *ctrl.Builder {
			return golden.WatchFixed(ctrl.NewControllerManagedBy(m), m.GetClient())
		},
		newObject: func() client.Object { return &golden.Shop{} },
		newStates: func(r client.Reader, obj client.Object) any { return golden.NewFixedState(r, obj.(*golden.Shop)) },
		options:   options,
	}
	accounts, classes := limited.watch(fixed, "account"), limited.watch(fixed, "class")
	accounts.wait(target, "[]")
	classes.wait(target, "[system-node-critical]")
	account := func(name string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	c.create(account("other"), account("builder"))
	t.Cleanup(func() {
		for _, name := range []string{"other", "builder"} {
			_ = c.live.Delete(context.WithoutCancel(t.Context()), account(name))
		}
	})
	accounts.wait(target, "[default/builder]")
	if err := c.live.Delete(t.Context(), account("builder")); err != nil {
		t.Fatal(err)
	}
	accounts.wait(target, "[]")
}

// TestWithoutTheLimitMoreIsNeeded shows that the rules do not allow a cache of all objects.
func TestWithoutTheLimitMoreIsNeeded(t *testing.T) {
	c := newCluster(t)
	objects, err := cache.New(c.asReader(), cache.Options{Mapper: c.live.RESTMapper(), Scheme: testScheme})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.GetInformer(t.Context(), &corev1.ServiceAccount{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	c.start(objects.Start)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if objects.WaitForCacheSync(ctx) {
		t.Error("the rules allow to list all objects")
	}
}
