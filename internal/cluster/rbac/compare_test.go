// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
)

const compared = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager
rules:
- apiGroups: ["", apps]
  resources: [configmaps, deployments]
  verbs: [get, list, watch, create]
# a comment
- {apiGroups: [""], resources: [secrets], resourceNames: [token], verbs: [get]}
- {apiGroups: [example.com], resources: ["*"], verbs: ["*"]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
- {apiGroups: [web.example.com], resources: [websites/finalizers], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: viewer}
rules:
- {apiGroups: [example.com], resources: [x], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: manager, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: election, namespace: system}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: election, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: election}
subjects: [{kind: ServiceAccount, name: manager}]
`

func TestCompare(t *testing.T) {
	policy, file := read(t, compared)
	who, err := policy.Account("")
	if err != nil {
		t.Fatal(err)
	}
	at := func(group, resource, verb string, targets ...permission.Target) permission.Need {
		return permission.Need{Group: group, Resource: resource, Verb: verb, Targets: targets}
	}
	all := []permission.Need{
		at("", "configmaps", "list", permission.Target{}), at("", "configmaps", "create", permission.Target{Namespace: "a"}),
		at("apps", "deployments", "watch"), at("apps", "deployments", "create"), at("", "secrets", "get", permission.Target{Namespace: "a", Name: "token"}),
		at("example.com", "things/status", "patch"), at("web.example.com", "websites/finalizers", "update"),
	}
	tests := map[string]struct {
		needs                      []permission.Need
		missing, unused, unchecked string
	}{
		"all that is there": {
			needs:  all,
			unused: "6: {apiGroups: [\"\"], resources: [deployments], verbs: [get, list, watch, create]}, 6: {apiGroups: [apps], resources: [configmaps], verbs: [get, list, watch, create]}",
		},
		"more than is there": {
			needs:   append(all, at("", "secrets", "get", permission.Target{Namespace: "a", Name: "other"}), at("", "configmaps", "patch")),
			missing: "patch configmaps, get secrets",
			unused:  "6: {apiGroups: [\"\"], resources: [deployments], verbs: [get, list, watch, create]}, 6: {apiGroups: [apps], resources: [configmaps], verbs: [get, list, watch, create]}",
		},
		"a lease in the namespace of the operator": {
			needs: []permission.Need{at("coordination.k8s.io", "leases", "update", permission.Target{Namespace: "system", Name: "x"})}, unused: "any",
		},
		"a lease in another namespace": {
			needs:   []permission.Need{at("coordination.k8s.io", "leases", "update", permission.Target{Namespace: "other", Name: "x"})},
			missing: "update leases.coordination.k8s.io", unused: "any",
		},
		"what only the viewer may": {needs: []permission.Need{at("other.example.com", "x", "get")}, missing: "get x.other.example.com", unused: "any"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := policy.Compare(who, test.needs)
			var missing, unused []string
			for _, m := range c.Missing {
				missing = append(missing, m.String())
			}
			for _, g := range c.Unused {
				unused = append(unused, strings.TrimPrefix(g.String(), file+":"))
			}
			if diff := cmp.Diff(test.missing, strings.Join(missing, ", ")); diff != "" {
				t.Error("missing", diff)
			}
			if diff := cmp.Diff(test.unused, strings.Join(unused, ", ")); diff != "" && test.unused != "any" {
				t.Error("unused", diff)
			}
			if test.unused != "any" && (len(c.Unchecked) != 2 || c.Unchecked[0].Place.Line != 12 || c.Unchecked[1].Place.Line != 31) {
				t.Errorf("unchecked are %v, want the events and the leases", c.Unchecked)
			}
		})
	}
}

// What is unused is said of the smallest part of a rule.
func TestCompareNamesParts(t *testing.T) {
	policy, file := read(t, compared)
	who, err := policy.Account("system/manager")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range policy.Compare(who, []permission.Need{{Resource: "configmaps", Verb: "get"}, {Group: "example.com", Resource: "x", Verb: "get"}}).Unused {
		got = append(got, strings.TrimPrefix(g.String(), file+":"))
	}
	want := []string{
		`6: {apiGroups: [""], resources: [configmaps], verbs: [list, watch, create]}`,
		`6: {apiGroups: [""], resources: [deployments], verbs: [get, list, watch, create]}`,
		`6: {apiGroups: [apps], resources: [configmaps, deployments], verbs: [get, list, watch, create]}`,
		`10: {apiGroups: [""], resources: [secrets], resourceNames: [token], verbs: [get]}`,
		`13: {apiGroups: [web.example.com], resources: [websites/finalizers], verbs: [update]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAccount(t *testing.T) {
	policy, _ := read(t, compared)
	for name, want := range map[string]string{"": "system:serviceaccount:system:manager", "a/b": "system:serviceaccount:a:b"} {
		if got, err := policy.Account(name); err != nil || got.GetName() != want {
			t.Errorf("%q: %v, %v, want %s", name, got, err, want)
		}
	}
	if _, err := policy.Account("b"); err == nil || !strings.Contains(err.Error(), "want namespace/name") {
		t.Errorf("got the error %v", err)
	}
}
