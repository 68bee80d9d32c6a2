// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package permission_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
)

// need returns one that is written as "verb resource.group/subresource" or "verb /path".
func need(text string, by ...string) permission.Need {
	verb, what, _ := strings.Cut(text, " ")
	if strings.HasPrefix(what, "/") {
		return permission.Need{Verb: verb, Path: what, By: by}
	}
	what, sub, has := strings.Cut(what, "/")
	resource, group, _ := strings.Cut(what, ".")
	if has {
		resource += "/" + sub
	}
	return permission.Need{Group: group, Resource: resource, Verb: verb, By: by}
}

func needs(texts ...string) []permission.Need {
	var list []permission.Need
	for _, text := range texts {
		list = append(list, need(text))
	}
	return list
}

func TestText(t *testing.T) {
	for _, text := range []string{"get pods", "patch websites.web.example.com/status", "get /metrics", "create pods/eviction"} {
		if got := need(text).String(); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

func TestMergeKeepsWhoNeedsAndWhat(t *testing.T) {
	a, b := need("get pods", "step A"), need("get pods", "step B", "step A")
	a.Targets = []permission.Target{{Namespace: "n", Name: "x"}}
	b.Targets = []permission.Target{{Namespace: "m"}, {Namespace: "n", Name: "x"}}
	got := permission.Merge([]permission.Need{b, need("create pods")}, []permission.Need{a})
	want := []permission.Need{need("get pods", "step A", "step B"), need("create pods")}
	want[0].Targets = []permission.Target{{Namespace: "m"}, {Namespace: "n", Name: "x"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Merge is commutative and associative, and merging twice changes nothing.
func TestMergeIsASet(t *testing.T) {
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) permission.Need {
		n := need(rapid.SampledFrom([]string{"get pods", "list pods", "patch jobs.batch", "patch jobs.batch/status", "get /metrics"}).Draw(t, "need"))
		for range rapid.IntRange(0, 2).Draw(t, "by") {
			n.By = append(n.By, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who"))
		}
		for range rapid.IntRange(0, 120).Draw(t, "targets") {
			n.Targets = append(n.Targets, permission.Target{Namespace: "n", Name: fmt.Sprint(rapid.IntRange(0, 200).Draw(t, "name"))})
		}
		return n
	}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		a, b := list.Draw(t, "a"), list.Draw(t, "b")
		both := permission.Merge(a, b)
		if !reflect.DeepEqual(both, permission.Merge(b, a)) {
			t.Error("the order of the lists matters")
		}
		if !reflect.DeepEqual(both, permission.Merge(both)) {
			t.Error("merging again changes the list")
		}
	})
}

func TestRules(t *testing.T) {
	rules := permission.Rules(needs("patch a.example.com", "get a.example.com", "get b.example.com", "patch b.example.com", "patch a.example.com/status", "delete pods", "get /metrics", "get /debug"))
	want := `// +kubebuilder:rbac:urls=/debug;/metrics,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=delete
// +kubebuilder:rbac:groups=example.com,resources=a;b,verbs=get;patch
// +kubebuilder:rbac:groups=example.com,resources=a/status,verbs=patch
`
	if diff := cmp.Diff(want, permission.Markers(rules)); diff != "" {
		t.Error(diff)
	}
}

// Where a cache lists and watches objects by their names, the rule has these names. It has none where
// all objects are listed, where other code watches one, or gets another one.
func TestRulesWithNames(t *testing.T) {
	at := func(text string, names ...string) permission.Need {
		n := need(text, permission.ByCache)
		for _, name := range names {
			n.Targets = append(n.Targets, permission.Target{Namespace: "n", Name: name})
		}
		return n
	}
	for want, list := range map[string][]permission.Need{
		"resources=secrets,verbs=get;list;watch,resourceNames=a;b": {at("list secrets", "a"), at("watch secrets", "b", "a")},
		"resources=secrets,verbs=get;list;watch":                   {at("list secrets", "a"), at("watch secrets", "")},
		"resources=secrets,verbs=get":                              {at("get secrets", "a")},
		"resources=pods,verbs=get;list;watch": {
			at("list pods", "a"), {Resource: "pods", Verb: "watch", By: []string{"main.go:1"}, Targets: []permission.Target{{Name: "a"}}},
		},
		"resources=jobs,verbs=get;list;watch":                                                   {at("watch jobs", "a"), at("get jobs", "a", "b")},
		"resources=secrets,verbs=get;list;watch,resourceNames=a|resources=secrets,verbs=create": {at("list secrets", "a"), at("create secrets", "")},
	} {
		got := strings.TrimSpace(permission.Markers(permission.Rules(permission.WithReads(list))))
		got = strings.ReplaceAll(strings.ReplaceAll(got, "// +kubebuilder:rbac:groups=\"\",", ""), "\n", "|")
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A marker that is printed is read as the same rule.
func TestMarkersAreRead(t *testing.T) {
	rules := permission.Rules(needs("get a.example.com", "patch a.example.com/status", "delete pods", "get /metrics"))
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"x"}, ResourceNames: []string{"one", "two"}, Verbs: []string{"bind"}})
	var got []rbacv1.PolicyRule
	for line := range strings.Lines(permission.Markers(rules)) {
		r, ok := permission.ParseMarker(line)
		if !ok {
			t.Errorf("no marker: %s", line)
		}
		got = append(got, r)
	}
	if diff := cmp.Diff(rules, got); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{"", "// a comment", "+kubebuilder:rbac:groups=a,resources=b,verbs=c", "// +kubebuilder:rbac:groups=a", "// +kubebuilder:object:root=true"} {
		if _, ok := permission.ParseMarker(line); ok {
			t.Errorf("%q was read as a marker", line)
		}
	}
	quoted, ok := permission.ParseMarker(`	//+kubebuilder:rbac:groups="",resources={pods,nodes},verbs="get"`)
	if !ok || !slices.Equal(quoted.APIGroups, []string{""}) || !slices.Equal(quoted.Verbs, []string{"get"}) {
		t.Errorf("got %v, %t", quoted, ok)
	}
}

func TestRole(t *testing.T) {
	want := `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager
rules:
- apiGroups:
  - ""
  resources:
  - pods
  verbs:
  - create
  - get
`
	if diff := cmp.Diff(want, permission.Role("manager", permission.Rules(needs("get pods", "create pods")))); diff != "" {
		t.Error(diff)
	}
}

func TestWithReads(t *testing.T) {
	got := permission.WithReads(needs("watch pods", "get secrets", "delete pods"))
	var texts []string
	for _, n := range got {
		texts = append(texts, n.String())
	}
	if diff := cmp.Diff([]string{"get pods", "list pods", "watch pods", "delete pods", "get secrets"}, texts); diff != "" {
		t.Error(diff)
	}
}
