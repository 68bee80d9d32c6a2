// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
)

// A Comparison is how the rules for a user differ from what an operator needs. See
// [Policy.Compare].
type Comparison struct {
	Missing   []Missed `json:"missing"`   // needs that no rule covers, ordered
	Unused    []Grant  `json:"unused"`    // what is allowed and not needed, in the order of the files
	Unchecked []Grant  `json:"unchecked"` // what is allowed and not needed, and may be all the same
}

// Matches reports whether no rule is missing or unused.
func (c Comparison) Matches() bool { return len(c.Missing)+len(c.Unused) == 0 }

// A Missed is a need that no rule covers.
type Missed struct {
	permission.Need
	// Text says what is refused, and which rule and marker would allow it, in several lines.
	Text string `json:"text"`
}

// A Grant is a rule, or a part of it.
type Grant struct {
	Rule  rbacv1.PolicyRule `json:"rule"`  // with nothing but what the grant is about
	Place Place             `json:"place"` // of the whole rule; empty if the policy was not read from files

	// Unrun names the files of controllers that have not run, and that ask for it.
	Unrun string `json:"unrun,omitempty"`
}

// String returns the rule in one line of YAML, with its place.
func (g Grant) String() string {
	text := textOf(&g.Rule)
	if place := g.Place.String(); place != "" {
		text = place + ": " + text
	}
	return text
}

// Compare compares what a user may do with needs, in both directions.
//
//   - A need without targets is covered by a rule that holds in any namespace.
//   - Who needs list or watch may also have the other verbs of reading: see [permission.Reads].
//   - Kubernetes events, Leases, reviews and paths are needed by what may not run where the needs
//     were found, and verbs such as bind are not those of a request. What the user may do with them
//     and does not need is unchecked.
func (p *Policy) Compare(who user.Info, needs []permission.Need) Comparison {
	c := Comparison{Missing: []Missed{}, Unused: []Grant{}, Unchecked: []Grant{}}
	for _, n := range permission.Merge(needs) {
		if refused := p.refused(who, n); refused != nil {
			c.Missing = append(c.Missing, Missed{n, Missing(*refused)})
		}
	}
	needed := permission.WithReads(needs)
	seen := map[string]bool{}
	for _, g := range p.grants[1:] { // the first one is what everyone may do
		if !g.holds(who, g.namespace) {
			continue
		}
		for i := range g.rules {
			var unused, unchecked []permission.Need
			for _, one := range apart(&g.rules[i]) {
				switch {
				case slices.ContainsFunc(needed, func(n permission.Need) bool { return covered(&one.rule, n) }):
				case isRequested(one.need) && (shows(&one.rule) || strings.HasSuffix(one.need.Resource, "/finalizers")):
					unused = append(unused, one.need)
				default:
					unchecked = append(unchecked, one.need)
				}
			}
			c.Unused = p.grant(c.Unused, seen, &g.rules[i], unused)
			c.Unchecked = p.grant(c.Unchecked, seen, &g.rules[i], unchecked)
		}
	}
	return c
}

// Uncheck takes what is for a controller that has not run out of what is unused: it is unchecked. Unrun
// returns the files that ask for a grant of a single verb, empty if they have run.
func (c *Comparison) Uncheck(unrun func(Grant) string) {
	unused := c.Unused
	c.Unused = []Grant{}
	for _, g := range unused {
		parts := map[string][]permission.Need{}
		for _, one := range apart(&g.Rule) {
			files := unrun(Grant{Rule: one.rule, Place: g.Place})
			parts[files] = append(parts[files], one.need)
		}
		for _, files := range slices.Sorted(maps.Keys(parts)) {
			list := &c.Unchecked
			if files == "" {
				list = &c.Unused
			}
			for _, r := range permission.Rules(parts[files]) {
				r.ResourceNames = g.Rule.ResourceNames
				*list = append(*list, Grant{r, g.Place, files})
			}
		}
	}
}

// grant adds the parts of a rule to a list, each part once.
func (p *Policy) grant(list []Grant, seen map[string]bool, rule *rbacv1.PolicyRule, parts []permission.Need) []Grant {
	for _, r := range permission.Rules(parts) {
		r.ResourceNames = rule.ResourceNames
		g := Grant{Rule: r, Place: p.places.of(rule)}
		if !seen[g.String()] {
			seen[g.String()] = true
			list = append(list, g)
		}
	}
	return list
}

// refused returns the first request of a need that no rule allows, or nil.
func (p *Policy) refused(who user.Info, n permission.Need) *authorizer.AttributesRecord {
	if len(n.Targets) == 0 {
		for _, g := range p.grants {
			for i := range g.rules {
				if g.holds(who, g.namespace) && covered(&g.rules[i], n) {
					return nil
				}
			}
		}
		return new(attributes(who, n, permission.Target{}))
	}
	for _, t := range n.Targets {
		a := attributes(who, n, t)
		if decision, _, _ := p.Authorize(context.Background(), a); decision != authorizer.DecisionAllow {
			return &a
		}
	}
	return nil
}

// attributes returns a request of a need.
func attributes(who user.Info, n permission.Need, t permission.Target) authorizer.AttributesRecord {
	resource, sub, _ := strings.Cut(n.Resource, "/")
	return authorizer.AttributesRecord{
		User: who, Verb: n.Verb, Namespace: t.Namespace, Name: t.Name,
		APIGroup: n.Group, Resource: resource, Subresource: sub, Path: n.Path, ResourceRequest: resource != "",
	}
}

// requested are the verbs of requests. Others, such as bind, are checked by the server itself, in the
// course of a request with another verb.
var requested = []string{"*", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// isRequested reports whether requests can show that something is needed.
func isRequested(n permission.Need) bool {
	return n.Resource != "" && slices.Contains(requested, n.Verb)
}

// covered reports whether a rule, in the namespace in which it holds, covers one of the requests of
// a need.
func covered(rule *rbacv1.PolicyRule, n permission.Need) bool {
	targets := n.Targets
	if len(targets) == 0 {
		targets = []permission.Target{{}}
		if len(rule.ResourceNames) > 0 {
			targets[0].Name = rule.ResourceNames[0] // a declaration does not say which
		}
	}
	return slices.ContainsFunc(targets, func(t permission.Target) bool { return allows(rule, attributes(nil, n, t)) })
}

// single is a rule for one verb of one resource or path.
type single struct {
	rule rbacv1.PolicyRule
	need permission.Need
}

// apart takes a rule apart.
func apart(rule *rbacv1.PolicyRule) []single {
	var list []single
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			list = append(list, single{
				rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: []string{verb}}, permission.Need{Path: path, Verb: verb},
			})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				list = append(list, single{
					rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.ResourceNames, Verbs: []string{verb}},
					permission.Need{Group: group, Resource: resource, Verb: verb},
				})
			}
		}
	}
	return list
}
