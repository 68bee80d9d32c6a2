// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// A Usage is a [Policy] that records which of its rules allow requests. It may be used
// concurrently.
type Usage struct {
	*Policy
	mu   sync.Mutex
	used map[*rbacv1.PolicyRule]bool
}

// Record returns a policy that allows the same, and records which rules are used.
func (p *Policy) Record() *Usage { return &Usage{Policy: p, used: map[*rbacv1.PolicyRule]bool{}} }

// Authorize implements [authorizer.UnconditionalAuthorizer].
func (u *Usage) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	decision := authorizer.DecisionNoOpinion
	for rule := range u.allowing(a) {
		// All rules that allow a request count as used: none of them is the wrong one.
		u.used[rule], decision = true, authorizer.DecisionAllow
	}
	return decision, "", nil
}

// Unused returns the rules for a user that have allowed no request, in the order of the files. It
// leaves out the rules whose use does not show in a simulation: those for Kubernetes events, Leases,
// reviews and the subresource finalizers, and those for paths.
func (u *Usage) Unused(who user.Info) []Grant {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []Grant
	seen := map[string]bool{}
	for _, g := range u.grants {
		if !g.holds(who, g.namespace) {
			continue
		}
		for i := range g.rules {
			if rule := &g.rules[i]; !u.used[rule] && shows(rule) && !seen[textOf(rule)] {
				seen[textOf(rule)] = true
				list = append(list, Grant{Rule: *rule})
			}
		}
	}
	return list
}

// shows reports whether an operator that needs a rule uses it in a simulation.
func shows(rule *rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.Resources, func(resource string) bool {
		switch resource {
		case "events", "leases", "tokenreviews", "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews":
			return false
		}
		return !strings.HasSuffix(resource, "/finalizers")
	})
}

// textOf returns a rule as it is written in YAML, in one line.
func textOf(rule *rbacv1.PolicyRule) string {
	groups := make([]string, len(rule.APIGroups))
	for i, g := range rule.APIGroups {
		groups[i] = g
		if g == "" || g == "*" {
			groups[i] = fmt.Sprintf("%q", g)
		}
	}
	text := fmt.Sprintf("{apiGroups: [%s], resources: [%s]", strings.Join(groups, ", "), strings.Join(rule.Resources, ", "))
	if len(rule.ResourceNames) > 0 {
		text += fmt.Sprintf(", resourceNames: [%s]", strings.Join(rule.ResourceNames, ", "))
	}
	return text + fmt.Sprintf(", verbs: [%s]}", strings.Join(rule.Verbs, ", "))
}
