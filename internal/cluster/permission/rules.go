// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// Rules returns the rules that allow needs and no more, ordered. Resources of a group that need the
// same verbs share a rule.
//
// Where every list and watch of a resource is one of a cache that is limited to single objects, by
// their names, the rule for reading has these names.
func Rules(needs []Need) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	merged := Merge(needs)
	for _, n := range merged {
		if names := readNames(merged, n); names != nil {
			rules = appendNamed(rules, n, names)
			continue
		}
		if last := len(rules) - 1; last >= 0 && isFor(&rules[last], n) {
			rules[last].Verbs = append(rules[last].Verbs, n.Verb)
			continue
		}
		r := rbacv1.PolicyRule{Verbs: []string{n.Verb}}
		if n.Resource == "" {
			r.NonResourceURLs = []string{n.Path}
		} else {
			r.APIGroups, r.Resources = []string{n.Group}, []string{n.Resource}
		}
		rules = append(rules, r)
	}
	var shared []rbacv1.PolicyRule
	for _, r := range rules {
		i := slices.IndexFunc(shared, func(other rbacv1.PolicyRule) bool {
			return len(other.ResourceNames)+len(r.ResourceNames) == 0 && slices.Equal(other.APIGroups, r.APIGroups) && slices.Equal(other.Verbs, r.Verbs)
		})
		if i < 0 {
			shared = append(shared, r)
			continue
		}
		shared[i].Resources = append(shared[i].Resources, r.Resources...)
		shared[i].NonResourceURLs = append(shared[i].NonResourceURLs, r.NonResourceURLs...)
	}
	return shared
}

// isFor reports whether a rule is for the resource or the path of a need.
func isFor(r *rbacv1.PolicyRule, n Need) bool {
	if n.Resource == "" {
		return slices.Equal(r.NonResourceURLs, []string{n.Path})
	}
	return slices.Equal(r.APIGroups, []string{n.Group}) && slices.Equal(r.Resources, []string{n.Resource}) && len(r.ResourceNames) == 0
}

// readNames returns the names that a rule for reading can have, ordered, or nil: those of the objects
// that a cache lists and watches, if all that is read is one of them. The names that other code asks
// for are those of one run, and others in the next.
func readNames(merged []Need, n Need) []string {
	if !slices.Contains(Reads(), n.Verb) {
		return nil
	}
	cached, read := sets.New[string](), sets.New[string]()
	for _, other := range merged {
		if other.Group != n.Group || other.Resource != n.Resource || other.Path != n.Path || !slices.Contains(Reads(), other.Verb) {
			continue
		}
		if len(other.Targets) == 0 || other.Verb != "get" && !slices.Equal(other.By, []string{ByCache}) {
			return nil
		}
		for _, t := range other.Targets {
			read.Insert(t.Name)
			if other.Verb != "get" {
				cached.Insert(t.Name)
			}
		}
	}
	if len(cached) == 0 || cached.Has("") || !cached.IsSuperset(read) {
		return nil
	}
	return sets.List(cached)
}

// appendNamed adds a need to the rule with these names, which is the last one if there is one.
func appendNamed(rules []rbacv1.PolicyRule, n Need, names []string) []rbacv1.PolicyRule {
	if last := len(rules) - 1; last >= 0 && slices.Equal(rules[last].ResourceNames, names) && slices.Equal(rules[last].Resources, []string{n.Resource}) &&
		slices.Equal(rules[last].APIGroups, []string{n.Group}) {
		rules[last].Verbs = append(rules[last].Verbs, n.Verb)
		return rules
	}
	return append(rules, rbacv1.PolicyRule{APIGroups: []string{n.Group}, Resources: []string{n.Resource}, ResourceNames: names, Verbs: []string{n.Verb}})
}

// Role returns a ClusterRole with rules, as the manifest that controller-gen would write.
func Role(name string, rules []rbacv1.PolicyRule) string {
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	for _, r := range rules {
		r.Verbs = slices.Sorted(slices.Values(r.Verbs))
		role.Rules = append(role.Rules, r)
	}
	data, err := yaml.Marshal(role)
	if err != nil {
		panic(err) // a ClusterRole can always be written
	}
	return "---\n" + string(data)
}

// markerPrefix begins the comments that controller-gen makes roles of.
const markerPrefix = "+kubebuilder:rbac:"

// Markers returns rules as comments that controller-gen makes a role of, one on a line.
func Markers(rules []rbacv1.PolicyRule) string {
	var text strings.Builder
	for _, r := range rules {
		text.WriteString("// " + markerPrefix)
		if len(r.NonResourceURLs) > 0 {
			fmt.Fprintf(&text, "urls=%s,verbs=%s\n", strings.Join(r.NonResourceURLs, ";"), strings.Join(r.Verbs, ";"))
			continue
		}
		groups := make([]string, len(r.APIGroups))
		for i, group := range r.APIGroups {
			if groups[i] = group; group == "" {
				groups[i] = `""`
			}
		}
		fmt.Fprintf(&text, "groups=%s,resources=%s,verbs=%s", strings.Join(groups, ";"), strings.Join(r.Resources, ";"), strings.Join(r.Verbs, ";"))
		if len(r.ResourceNames) > 0 {
			fmt.Fprintf(&text, ",resourceNames=%s", strings.Join(r.ResourceNames, ";"))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// ParseMarker returns the rule of a comment that controller-gen makes a role of; false for any other
// line.
func ParseMarker(line string) (rbacv1.PolicyRule, bool) {
	text, isComment := strings.CutPrefix(strings.TrimSpace(line), "//")
	text, isMarker := strings.CutPrefix(strings.TrimSpace(text), markerPrefix)
	if !isComment || !isMarker {
		return rbacv1.PolicyRule{}, false
	}
	var r rbacv1.PolicyRule
	for field := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(field, "=")
		list := strings.Split(strings.Trim(value, "{}"), ";")
		for i := range list {
			list[i] = strings.Trim(strings.TrimSpace(list[i]), `"`)
		}
		switch strings.TrimSpace(key) {
		case "groups":
			r.APIGroups = list
		case "resources":
			r.Resources = list
		case "verbs":
			r.Verbs = list
		case "resourceNames":
			r.ResourceNames = list
		case "urls":
			r.NonResourceURLs = list
		}
	}
	return r, len(r.Verbs) > 0
}
