// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/step"
)

// The rules follow from the declared kinds.
func TestRules(t *testing.T) {
	parts := apply.Children[*corev1.ReplicationController]("Parts", nil,
		apply.Owns(&corev1.Service{}), apply.Tracks(&rbacv1.ClusterRole{}, &corev1.Service{}), apply.Formerly(&networkingv1.Ingress{}))
	needs, err := needsOf(t, "example.com/test", ctrlkittest.NewRequest(t, &corev1.ReplicationController{}).Client, parts)
	must(t, err)
	want := `// +kubebuilder:rbac:groups="",resources=replicationcontrollers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=replicationcontrollers/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=replicationcontrollers/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,verbs=get;list;watch;create;patch;delete
`
	if diff := cmp.Diff(want, permission.Markers(permission.Rules(needs))); diff != "" {
		t.Error(diff)
	}
}

func TestRulesOfUnknownKinds(t *testing.T) {
	c := ctrlkittest.NewRequest(t, &corev1.ReplicationController{}, ctrlkittest.WithScheme(schemeOf(corev1.AddToScheme))).Client
	for _, tt := range []struct {
		kind client.Object
		want string
	}{
		{&rbacv1.ClusterRole{}, `kind of *v1.ClusterRole: no kind is registered for the type v1.ClusterRole in scheme`},
		{&extensionsv1beta1.Ingress{}, `kind of *v1beta1.Ingress: no kind is registered`},
	} {
		_, err := needsOf(t, "", c, apply.Children[*corev1.ReplicationController]("Parts", nil, apply.Owns(tt.kind)))
		if got := fmt.Sprint(err); !strings.Contains(got, tt.want) {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// needsOf returns what an engine with a step of children needs.
func needsOf(t *testing.T, finalizer string, c client.Client, parts step.Step[*corev1.ReplicationController]) ([]permission.Need, error) {
	t.Helper()
	engine, err := step.New(step.Options[*corev1.ReplicationController]{Name: "test", Finalizer: finalizer, Client: c}, parts)
	if err != nil {
		return nil, err
	}
	return engine.Needs()
}

func schemeOf(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, a := range add {
		if err := a(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// An engine of untyped objects knows what its children need, and keeps them.
func TestChildrenOfUntypedOwners(t *testing.T) {
	c := newCluster(t)
	shop := client.ObjectKeyFromObject(c.shop("shop"))
	parts := apply.Children("Parts", func(_ context.Context, req *step.Request[*unstructured.Unstructured], want *apply.Set) error {
		want.Add(newConfigMap(req.Object.GetName()))
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	engine, err := step.New(step.Options[*unstructured.Unstructured]{Name: "shops", Kind: shopVersion.WithKind("Shop"), Client: c.client}, parts)
	must(t, err)
	needs, err := engine.Needs()
	if err != nil || !slices.ContainsFunc(needs, func(n permission.Need) bool { return n.Resource == "shops/finalizers" && n.Verb == "update" }) {
		t.Errorf("needs %v, error %v", needs, err)
	}
	if _, err := engine.Reconcile(c.ctx, reconcile.Request{NamespacedName: shop}); err != nil {
		t.Error(err)
	}
	child := newConfigMap("shop")
	if !c.get(child, "shop") || child.OwnerReferences[0].Kind != "Shop" {
		t.Errorf("the child: %v", child)
	}
	if got := c.condition(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); got != "True AllReady" {
		t.Errorf("condition %s", got)
	}
}
