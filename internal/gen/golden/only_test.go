// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/state"
)

// TestCacheOnlyNeedsNoMoreThanTheNames reads a Secret as a user whose role has resourceNames: through
// a limited cache, and in vain through one of all Secrets.
func TestCacheOnlyNeedsNoMoreThanTheNames(t *testing.T) {
	c := newCluster(t)
	user := "reader-" + c.place
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"settings"}, Verbs: []string{"get", "list", "watch"},
	}}}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.place, Name: name}}
	}
	c.create(secret("settings"), secret("other"), role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	var limited ctrl.Options
	if err := state.CacheOnly(&limited, &corev1.Secret{}, state.Selection{Namespace: c.place, Name: "settings"}); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	for _, test := range []struct {
		name    string
		options cache.Options
		reads   bool
	}{{"limited", limited.Cache, true}, {"all", cache.Options{}, false}} {
		t.Run(test.name, func(t *testing.T) {
			test.options.Mapper, test.options.Scheme = c.live.RESTMapper(), testScheme
			objects, err := cache.New(config, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := objects.GetInformer(t.Context(), &corev1.Secret{}, cache.BlockUntilSynced(false)); err != nil {
				t.Fatal(err)
			}
			c.start(objects.Start)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			objects.WaitForCacheSync(ctx)
			if err := objects.Get(ctx, client.ObjectKeyFromObject(secret("settings")), &corev1.Secret{}); (err == nil) != test.reads {
				t.Errorf("got %v, want it read: %v", err, test.reads)
			}
			var found corev1.SecretList
			if err := objects.List(ctx, &found); test.reads && (err != nil || len(found.Items) != 1) {
				t.Errorf("got %d Secrets, %v, want the one with the name", len(found.Items), err)
			}
		})
	}
}
