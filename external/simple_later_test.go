// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/step"
)

func definitionOfServers(scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	d := serverKind.Definition()
	d.Spec.Scope = scope
	return d
}

// An operator runs although the definition of a kind that it watches is not there, and the objects
// that name one of that kind wait. When it comes, what exists of it, and what is created later,
// ends the wait; what is changed reconciles those that name it, and is an input with SkipUnchanged.
func TestAKindThatComesLater(t *testing.T) {
	rings.Test(t, "takes a second")
	for _, scope := range []apiextensionsv1.ResourceScope{apiextensionsv1.NamespaceScoped, apiextensionsv1.ClusterScoped} {
		onCluster(t, string(scope), func(t *testing.T, c *cluster) {
			o := &operator{recorder: newRecorder(), skipUnchanged: true}
			o.claim = func(ctx context.Context, req *request) error {
				_, err := step.GetOrWait[*Server](ctx, req, client.ObjectKey{Name: req.Object.Spec.Server})
				return err
			}
			o.prepare = func(mgr ctrl.Manager) {
				o.options.Watches = []step.Watch{{Object: &Server{}, Later: mgr.GetCache(), NamedBy: func(obj client.Object) []client.ObjectKey {
					return []client.ObjectKey{{Name: obj.(*User).Spec.Server}}
				}}}
			}
			c.start(o)
			c.create(func(obj *User) { obj.Spec.Server = "mysql" })
			time.Sleep(time.Hour) // longer than a controller waits for its watches
			equal(t, "Ready", c.condition("Ready"), "False Waiting: waits for Server prod/mysql, whose kind the API server does not have")
			if writes := c.takeWrites(); len(writes) != 1 {
				t.Errorf("writes %q while the kind is missing, want one", writes)
			}
			c.must(c.server.Install(definitionOfServers(scope)))
			time.Sleep(2 * time.Minute)
			name := map[apiextensionsv1.ResourceScope]string{apiextensionsv1.NamespaceScoped: "prod/mysql", apiextensionsv1.ClusterScoped: "mysql"}[scope]
			equal(t, "Ready", c.condition("Ready"), "False Waiting: waits for Server "+name)
			o.take()
			mysql := &Server{ObjectMeta: metav1.ObjectMeta{Name: "mysql"}}
			if scope == apiextensionsv1.NamespaceScoped {
				mysql.Namespace = "prod"
			}
			c.must(c.user.Create(t.Context(), mysql))
			pass()
			equal(t, "Ready", c.condition("Ready"), "True Ready")
			time.Sleep(time.Hour)
			o.take()
			c.annotate(mysql, "a", "b")
			equal(t, "calls after a change", o.take(), "Claim CreateOrUpdate")
			c.annotate(user("prod", "a"), "unrelated", "b")
			o.take()
			time.Sleep(30 * time.Minute)
			equal(t, "calls while nothing changes", strings.TrimSpace(o.take()), "")
		})
	}
}

// The objects of such a kind may be owned by those that are reconciled, or name them.
func TestAnOwnedKindThatComesLater(t *testing.T) {
	inCluster(t, func(c *cluster) {
		o := &operator{recorder: newRecorder()}
		noted := 0
		o.prepare = func(mgr ctrl.Manager) {
			o.options.Watches = []step.Watch{{
				Object: &Server{}, Later: mgr.GetCache(), Owned: true,
				Mapped: func(obj client.Object, _ schema.GroupKind) []client.ObjectKey {
					return []client.ObjectKey{{Namespace: obj.GetNamespace(), Name: obj.GetLabels()["user"]}}
				},
				Note: func(_ schema.GroupKind, _, _ client.Object) { noted++ },
			}}
		}
		c.start(o)
		c.create()
		equal(t, "Ready", c.condition("Ready"), "True Ready")
		c.must(c.server.Install(definitionOfServers(apiextensionsv1.NamespaceScoped)))
		time.Sleep(time.Minute)
		o.take()
		owned := &Server{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "mysql"}}
		c.must(ctrl.SetControllerReference(c.get(), owned, scheme))
		c.must(c.user.Create(t.Context(), owned))
		pass()
		if equal(t, "calls", o.take(), "Claim CreateOrUpdate"); noted == 0 {
			t.Error("nothing was noted")
		}
		naming := &Server{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "other", Labels: map[string]string{"user": "a"}}}
		c.must(c.user.Create(t.Context(), naming))
		pass()
		equal(t, "calls", o.take(), "Claim CreateOrUpdate")
	})
}
