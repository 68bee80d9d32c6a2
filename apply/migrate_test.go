// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
)

// Children that other tools kept become those of a set: their Pods are not restarted, and nothing
// remains that the set does not have.
func TestMigrate(t *testing.T) {
	for _, tt := range []struct {
		name        string
		manager     string
		annotations map[string]string
		owned       bool
	}{
		{"an older version with Update", "site-operator", map[string]string{"old": "yes"}, true},
		{"wrangler", "rancher", map[string]string{
			"objectset.rio.cattle.io/applied": "H4sIAAAAAAAA", "objectset.rio.cattle.io/id": "site", "objectset.rio.cattle.io/owner-name": "shop",
		}, true},
		{"Helm", "helm", map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "default"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
				set.Add(newDeployment("web", 2), apply.NoWait, apply.Adopt)
			}, apply.Owns(&appsv1.Deployment{}), apply.Migrate(tt.manager))
			old := newDeployment("web", 1)
			old.Annotations = tt.annotations
			old.Labels = map[string]string{"of": tt.manager}
			old.Spec.MinReadySeconds = 5
			if tt.owned {
				old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(shop, shopVersion.WithKind("Shop"))}
			}
			old.Namespace = o.namespace
			must(t, o.client.Create(o.ctx, old, client.FieldOwner(tt.manager)))
			old.Spec.Replicas = new(int32)
			must(t, o.client.Update(o.ctx, old, client.FieldOwner(tt.manager)))
			o.mustSettle(shop)
			web := &appsv1.Deployment{}
			o.get(web, "web")
			if web.UID != old.UID || *web.Spec.Replicas != 2 {
				t.Errorf("UID %s instead of %s, %d replicas", web.UID, old.UID, *web.Spec.Replicas)
			}
			if a, b := old.Spec.Template.String(), web.Spec.Template.String(); a != b {
				t.Errorf("the template changed from\n%s to\n%s", a, b)
			}
			if web.Spec.MinReadySeconds != 0 || web.Labels["of"] != "" {
				t.Errorf("stale fields remain: %d, %v", web.Spec.MinReadySeconds, web.Labels)
			}
			for key := range tt.annotations {
				if _, there := web.Annotations[key]; there {
					t.Errorf("annotation %s remains", key)
				}
			}
			if !metav1.IsControlledBy(web, shop) || len(web.OwnerReferences) != 1 {
				t.Errorf("owners %v", web.OwnerReferences)
			}
			for _, entry := range web.ManagedFields {
				if entry.Manager == tt.manager {
					t.Errorf("%s still manages %s", entry.Manager, entry.FieldsV1)
				}
			}
			if _ = o.reconcile(shop); len(o.takeWrites()) != 0 {
				t.Error("it does not become idle")
			}
		})
	}
}

// An object that an older version created once, with CreateOnly or what it had for that, keeps its
// content: it may be a generated password.
func TestMigrateKeepsWhatIsCreatedOnly(t *testing.T) {
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		set.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"password": "new"}}, apply.CreateOnly)
	}, apply.Owns(&corev1.Secret{}), apply.Migrate("test"))
	o.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "password", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shop, shopVersion.WithKind("Shop"))}},
		StringData: map[string]string{"password": "old"},
	})
	o.mustSettle(shop)
	secret := &corev1.Secret{}
	o.get(secret, "password")
	if got := string(secret.Data["password"]); got != "old" || secret.Labels[apply.SetLabel] == "" {
		t.Errorf("password %q with labels %v", got, secret.Labels)
	}
}

// What another field manager has applied becomes ours, too, and what it has updated besides. What
// managers have that are not named stays theirs.
func TestMigrateWhatOthersHaveApplied(t *testing.T) {
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newConfigMap("a", "stays", "1"), apply.Adopt) },
		apply.Owns(&corev1.ConfigMap{}), apply.Migrate("old-operator"))
	for manager, data := range map[string]map[string]string{"old-operator": {"stays": "0", "goes": "1"}, "flux": {"flux": "1"}} {
		must(t, o.client.Apply(o.ctx, corev1ac.ConfigMap("a", o.namespace).WithData(data), client.FieldOwner(manager)))
	}
	cm := newConfigMap("a")
	cm.Namespace = o.namespace
	must(t, o.client.Patch(o.ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"too":"1"}}`)), client.FieldOwner("old-operator")))
	o.mustSettle(shop)
	if got := o.configMap("a"); got != "flux=1,stays=1" {
		t.Errorf("data %s", got)
	}
	cm = &corev1.ConfigMap{}
	o.get(cm, "a")
	for _, entry := range cm.ManagedFields {
		if strings.HasPrefix(entry.Manager, "old-operator") {
			t.Errorf("%s still manages %s", entry.Manager, entry.FieldsV1)
		}
	}
}
