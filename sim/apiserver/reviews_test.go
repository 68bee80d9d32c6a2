// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/apiserver/rbac"
)

// newRestricted returns a server on which the ServiceAccount a/b may only read and patch
// ConfigMaps.
func newRestricted(t *testing.T) *apiserver.Server {
	t.Helper()
	policy, err := rbac.New(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "patch"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "a", Name: "b"}},
		},
	)
	must(t, err)
	return apiserver.New(apiserver.Options{Authorizer: policy})
}

func clientsOf(s *apiserver.Server, user string) *kubernetes.Clientset {
	cfg := s.Config()
	cfg.Impersonate.UserName = user
	return kubernetes.NewForConfigOrDie(cfg)
}

const account = "system:serviceaccount:a:b"

func TestForbidden(t *testing.T) {
	server := newRestricted(t)
	clients, ctx := clientsOf(server, account), context.Background()
	_, listed := clients.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
	_, watched := clients.CoreV1().Secrets("").Watch(ctx, metav1.ListOptions{})
	_, got := clients.AppsV1().Deployments("default").Get(ctx, "x", metav1.GetOptions{})
	// An apply that creates needs the verb create beside patch.
	_, applied := clients.CoreV1().ConfigMaps("default").Apply(ctx, corev1ac.ConfigMap("x", "default"), metav1.ApplyOptions{FieldManager: "m"})
	for want, err := range map[string]error{
		`secrets is forbidden: User "system:serviceaccount:a:b" cannot list resource "secrets" in API group "" at the cluster scope`:                           listed,
		`secrets is forbidden: User "system:serviceaccount:a:b" cannot watch resource "secrets" in API group "" at the cluster scope`:                          watched,
		`deployments.apps "x" is forbidden: User "system:serviceaccount:a:b" cannot get resource "deployments" in API group "apps" in the namespace "default"`: got,
		`configmaps "x" is forbidden: User "system:serviceaccount:a:b" cannot create resource "configmaps" in API group "" in the namespace "default"`:         applied,
	} {
		if !apierrors.IsForbidden(err) || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if _, err := clientsOf(server, "").CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("a client without a user: %v", err)
	}
	if _, err := clients.CoreV1().ConfigMaps("default").Apply(ctx, corev1ac.ConfigMap("x", "default"), metav1.ApplyOptions{FieldManager: "m"}); err != nil {
		t.Errorf("an apply that changes: %v", err)
	}
	if _, err := clients.Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
}

func TestReviews(t *testing.T) {
	server := newRestricted(t)
	clients, ctx := clientsOf(server, account), context.Background()
	ask := func(verb string) bool {
		t.Helper()
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Resource: "configmaps", Namespace: "default"},
		}}
		answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		must(t, err)
		return answer.Status.Allowed
	}
	if !ask("get") || ask("delete") {
		t.Error("a review of one's own access answers wrongly")
	}
	rules, err := clients.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}, metav1.CreateOptions{})
	if err != nil || len(rules.Status.ResourceRules) != 3 || len(rules.Status.NonResourceRules) != 1 {
		t.Errorf("the rules: %v, %v", rules, err)
	}
	self, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || self.Status.UserInfo.Username != account || len(self.Status.UserInfo.Groups) != 3 {
		t.Errorf("who am I: %v, %v", self, err)
	}
	other := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: account, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "configmaps"},
	}}
	if _, err := clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, other, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a review of others' access without the permission: %v", err)
	}
	admin := clientsOf(server, "")
	if answer, err := admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, other, metav1.CreateOptions{}); err != nil || !answer.Status.Allowed {
		t.Errorf("a review of others' access: %v, %v", answer, err)
	}
	if _, err := admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an empty review: %v", err)
	}
	token := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}}
	if answer, err := admin.AuthenticationV1().TokenReviews().Create(ctx, token, metav1.CreateOptions{}); err != nil || answer.Status.Authenticated || answer.Status.Error == "" {
		t.Errorf("a review of a token: %v, %v", answer, err)
	}
	// controller-runtime's client finds the kinds by discovery.
	c, err := client.New(server.Config(), client.Options{})
	must(t, err)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps"},
	}}
	if err := c.Create(ctx, review); err != nil || !review.Status.Allowed {
		t.Errorf("a review without a user: %v, %v", review, err)
	}
}
