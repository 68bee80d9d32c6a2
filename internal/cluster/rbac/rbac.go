// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package rbac authorizes requests to the API server in memory by the Roles and bindings of an
// operator's manifests, as the real server does.
//
//	policy, err := rbac.Read("../config/rbac")
//	if err != nil { ... }
//	server := apiserver.New(apiserver.Options{Authorizer: policy})
//	cfg := server.Config()
//	cfg.Impersonate.UserName = "system:serviceaccount:system:controller-manager"
package rbac

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// A Policy is what the users of a cluster may do. It is immutable.
//
//   - A ClusterRoleBinding grants its rules everywhere, a RoleBinding in its namespace.
//   - If there are no bindings, as in the files that controller-gen writes, everyone has all roles.
//   - A ClusterRole with an aggregationRule has the rules of the ClusterRoles that it selects.
//   - Of the roles that every cluster has, cluster-admin is known, and what all authenticated users
//     may do: discovery, and reviews of their own permissions.
type Policy struct {
	grants []grant
	places places
}

// grant is a binding with the rules of its role.
type grant struct {
	namespace string           // in which it holds; "" is everywhere
	subjects  []rbacv1.Subject // nil is everyone
	rules     []rbacv1.PolicyRule
}

// roleKey names a role; a ClusterRole has no namespace.
type roleKey struct{ kind, namespace, name string }

// New returns the policy of Roles, ClusterRoles, RoleBindings and ClusterRoleBindings. Objects of
// other kinds have no effect.
func New(objects ...runtime.Object) (*Policy, error) { return newPolicy(objects, nil) }

func newPolicy(objects []runtime.Object, places places) (*Policy, error) {
	roles, bindings := map[roleKey][]rbacv1.PolicyRule{}, []runtime.Object(nil)
	var clusterRoles []*rbacv1.ClusterRole
	for _, obj := range objects {
		switch o := obj.(type) {
		case *rbacv1.Role:
			roles[roleKey{"Role", o.Namespace, o.Name}] = o.Rules
		case *rbacv1.ClusterRole:
			clusterRoles = append(clusterRoles, o)
		case *rbacv1.RoleBinding, *rbacv1.ClusterRoleBinding:
			bindings = append(bindings, o)
		}
	}
	for _, o := range clusterRoles {
		rules, err := aggregate(o, clusterRoles)
		if err != nil {
			return nil, err
		}
		roles[roleKey{kind: "ClusterRole", name: o.Name}] = rules
	}
	p := &Policy{places: places, grants: []grant{{subjects: allAuthenticated, rules: everyone}}}
	if len(bindings) == 0 {
		for _, key := range slices.SortedFunc(maps.Keys(roles), compareRoles) {
			p.grants = append(p.grants, grant{namespace: key.namespace, rules: roles[key]})
		}
		return p, nil
	}
	for _, b := range bindings {
		g, err := newGrant(b, roles)
		if err != nil {
			return nil, err
		}
		p.grants = append(p.grants, g)
	}
	return p, nil
}

func compareRoles(a, b roleKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

var allAuthenticated = []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: user.AllAuthenticated}}

// everyone is what system:basic-user, system:discovery and system:public-info-viewer grant.
var everyone = []rbacv1.PolicyRule{
	{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}, Verbs: []string{"create"}},
	{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{"create"}},
	{NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"}, Verbs: []string{"get"}},
}

// clusterAdmin is what the ClusterRole cluster-admin grants.
var clusterAdmin = []rbacv1.PolicyRule{
	{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
}

// aggregate returns the rules of a ClusterRole. As in a cluster, where a controller writes them, an
// aggregationRule replaces the rules that the role has itself.
func aggregate(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	if role.AggregationRule == nil {
		return role.Rules, nil
	}
	var rules []rbacv1.PolicyRule
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("the aggregationRule of ClusterRole %s: %w", role.Name, err)
		}
		for _, other := range all {
			if other != role && selector.Matches(labels.Set(other.Labels)) {
				rules = append(rules, other.Rules...)
			}
		}
	}
	return rules, nil
}

func newGrant(binding runtime.Object, roles map[roleKey][]rbacv1.PolicyRule) (grant, error) {
	var g grant
	var ref rbacv1.RoleRef
	name := ""
	switch b := binding.(type) {
	case *rbacv1.RoleBinding:
		g.namespace, g.subjects, ref, name = cmp.Or(b.Namespace, metav1.NamespaceDefault), b.Subjects, b.RoleRef, "RoleBinding "+b.Name
	case *rbacv1.ClusterRoleBinding:
		g.subjects, ref, name = b.Subjects, b.RoleRef, "ClusterRoleBinding "+b.Name
	}
	if g.subjects == nil {
		g.subjects = []rbacv1.Subject{}
	}
	key := roleKey{kind: ref.Kind, name: ref.Name}
	if ref.Kind == "Role" {
		key.namespace = g.namespace
	}
	rules, ok := roles[key]
	if !ok && ref.Kind == "Role" {
		rules, ok = roles[roleKey{kind: "Role", name: ref.Name}] // a manifest without namespace, for kubectl apply -n
	}
	switch {
	case ok:
		g.rules = rules
	case key.kind == "ClusterRole" && key.name == "cluster-admin":
		g.rules = clusterAdmin
	default:
		return g, fmt.Errorf("%s grants %s %s, which is not among the files: add the file that has it", name, ref.Kind, ref.Name)
	}
	return g, nil
}

// Accounts returns the ServiceAccounts that bindings name, ordered.
func (p *Policy) Accounts() []types.NamespacedName {
	found := map[types.NamespacedName]bool{}
	for _, g := range p.grants {
		for _, s := range g.subjects {
			if s.Kind == rbacv1.ServiceAccountKind {
				found[types.NamespacedName{Namespace: cmp.Or(s.Namespace, g.namespace), Name: s.Name}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int {
		return cmp.Compare(a.String(), b.String())
	})
}

// Account returns the user of a ServiceAccount, given as "namespace/name". Without one, it is that
// of the bindings, if they name only one.
func (p *Policy) Account(name string) (user.Info, error) {
	if name != "" {
		namespace, name, ok := strings.Cut(name, "/")
		if !ok {
			return nil, fmt.Errorf("the ServiceAccount is %q, want namespace/name", namespace)
		}
		return userOf(namespace, name), nil
	}
	switch accounts := p.Accounts(); len(accounts) {
	case 0:
		return userOf("default", "operator"), nil
	case 1:
		return userOf(accounts[0].Namespace, accounts[0].Name), nil
	default:
		return nil, fmt.Errorf("the bindings name %d ServiceAccounts, %v: say which one is meant", len(accounts), accounts)
	}
}

// userOf returns the user as which the Pods of a ServiceAccount make requests.
func userOf(namespace, name string) user.Info {
	groups := append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated)
	return &user.DefaultInfo{Name: serviceaccount.MakeUsername(namespace, name), Groups: groups}
}

// Authorize implements [authorizer.UnconditionalAuthorizer].
func (p *Policy) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	for range p.allowing(a) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// allowing returns the rules that allow a request.
func (p *Policy) allowing(a authorizer.Attributes) iter.Seq[*rbacv1.PolicyRule] {
	return func(yield func(*rbacv1.PolicyRule) bool) {
		for _, g := range p.grants {
			if !g.holds(a.GetUser(), a.GetNamespace()) || g.namespace != "" && !a.IsResourceRequest() {
				continue
			}
			for i := range g.rules {
				if allows(&g.rules[i], a) && !yield(&g.rules[i]) {
					return
				}
			}
		}
	}
}

// holds reports whether a grant is for a user, in a namespace.
func (g *grant) holds(u user.Info, namespace string) bool {
	if g.namespace != "" && g.namespace != namespace {
		return false
	}
	return g.subjects == nil || slices.ContainsFunc(g.subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == u.GetName()
		case rbacv1.GroupKind:
			return slices.Contains(u.GetGroups(), s.Name)
		case rbacv1.ServiceAccountKind:
			return serviceaccount.MatchesUsername(cmp.Or(s.Namespace, g.namespace), s.Name, u.GetName())
		}
		return false
	})
}

// allows reports whether a rule covers a request.
func allows(rule *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !covers(rule.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool {
			prefix, wildcard := strings.CutSuffix(url, "*")
			return url == a.GetPath() || wildcard && strings.HasPrefix(a.GetPath(), prefix)
		})
	}
	return covers(rule.APIGroups, a.GetAPIGroup()) && coversResource(rule.Resources, a.GetResource(), a.GetSubresource()) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName()))
}

func covers(list []string, s string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, s)
}

func coversResource(list []string, resource, subresource string) bool {
	if subresource == "" {
		return covers(list, resource)
	}
	return covers(list, resource+"/"+subresource) || slices.Contains(list, "*/"+subresource)
}

// RulesFor implements [authorizer.RuleResolver].
func (p *Policy) RulesFor(_ context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	var resources []authorizer.ResourceRuleInfo
	var paths []authorizer.NonResourceRuleInfo
	for _, g := range p.grants {
		if !g.holds(u, namespace) {
			continue
		}
		for _, r := range g.rules {
			if len(r.Resources) > 0 {
				resources = append(resources, &authorizer.DefaultResourceRuleInfo{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
			}
			if len(r.NonResourceURLs) > 0 && g.namespace == "" {
				paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
			}
		}
	}
	return resources, paths, false, nil
}
