// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

const manifests = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: [""], resources: [configmaps, "*/status"], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [secrets], resourceNames: [token], verbs: ["*"]}
- {apiGroups: ["*"], resources: [deployments/scale], verbs: [update]}
- {nonResourceURLs: [/metrics, "/debug/*"], verbs: [get]}
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
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: election, namespace: system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: election}
subjects: [{kind: ServiceAccount, name: manager}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: all}}]}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: part, labels: {to: all}}
rules:
- {apiGroups: [""], resources: [pods], verbs: [delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}
subjects: [{kind: Group, name: "system:serviceaccounts:system"}]
`

func write(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rbac.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// read reads a file with this content, and returns its name, too.
func read(t *testing.T, content string) (policy *rbac.Policy, file string) {
	t.Helper()
	file = write(t, content)
	policy, err := rbac.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return policy, file
}

// ask returns the attributes of "verb group/resource[/subresource] [namespace[/name]]" or of
// "verb /path".
func ask(account, text string) authorizer.AttributesRecord {
	namespace, name, _ := strings.Cut(account, "/")
	a := authorizer.AttributesRecord{User: apiserver.ServiceAccount(namespace, name)}
	parts := strings.Fields(text)
	a.Verb = parts[0]
	if strings.HasPrefix(parts[1], "/") && !strings.HasPrefix(parts[1], "//") {
		a.Path = parts[1]
		return a
	}
	a.ResourceRequest = true
	a.APIGroup, a.Resource, _ = strings.Cut(strings.TrimPrefix(parts[1], "/"), "/")
	a.Resource, a.Subresource, _ = strings.Cut(a.Resource, "/")
	if len(parts) > 2 {
		a.Namespace, a.Name, _ = strings.Cut(parts[2], "/")
	}
	return a
}

func TestAuthorize(t *testing.T) {
	policy, err := rbac.Read(filepath.Dir(write(t, manifests)))
	if err != nil {
		t.Fatal(err)
	}
	if got := policy.Accounts(); len(got) != 1 || got[0].String() != "system/manager" {
		t.Errorf("the accounts are %v, want system/manager", got)
	}
	tests := map[string]bool{
		"list //configmaps":                                    true,
		"get //configmaps a/x":                                 true,
		"update //configmaps a/x":                              false,
		"get //pods/status a/x":                                true,
		"get //pods a/x":                                       false,
		"get //secrets a/token":                                true,
		"get //secrets a/other":                                false,
		"list //secrets a":                                     false,
		"update apps/deployments/scale a/x":                    true,
		"update apps/deployments a/x":                          false,
		"create coordination.k8s.io/leases system":             true,
		"create coordination.k8s.io/leases a":                  false,
		"delete //pods a/x":                                    true,
		"delete //services a/x":                                false,
		"get /metrics":                                         true,
		"get /debug/pprof":                                     true,
		"get /logs":                                            false,
		"get /apis/apps/v1":                                    true,
		"create authorization.k8s.io/selfsubjectaccessreviews": true,
	}
	for text, want := range tests {
		attributes := ask("system/manager", text)
		attributes.APIGroup = strings.TrimPrefix(attributes.APIGroup, "/")
		got, _, err := policy.Authorize(context.Background(), attributes)
		if err != nil || (got == authorizer.DecisionAllow) != want {
			t.Errorf("%s: %s, %v, want allowed: %t", text, got, err, want)
		}
		if want && !strings.Contains(text, "selfsubject") && !strings.Contains(text, "/apis") {
			if got, _, _ := policy.Authorize(context.Background(), ask("other/manager", text)); got == authorizer.DecisionAllow {
				t.Errorf("%s: allowed to a ServiceAccount of another namespace", text)
			}
		}
	}
}

func TestRead(t *testing.T) {
	dangling := strings.Replace(manifests, "kind: ClusterRole, name: manager}", "kind: ClusterRole, name: editor}", 1)
	tests := map[string]struct{ content, want string }{
		"a role that is missing": {dangling, "ClusterRoleBinding manager grants ClusterRole editor, which is not among the files"},
		"a mistyped field":       {strings.Replace(manifests, "resourceNames", "resourcesNames", 1), `unknown field`},
		"nothing":                {"kind: Kustomization", "no Roles, ClusterRoles or bindings"},
		"no YAML":                {"{{ if .Values.rbac }}", "rbac.yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := rbac.Read(write(t, test.content)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want one with %q", err, test.want)
			}
		})
	}
	if _, err := rbac.Read("testdata/none"); err == nil {
		t.Error("a directory that is missing was read")
	}
}

// Without bindings, as controller-gen writes the file, everyone has the roles.
func TestWithoutBindings(t *testing.T) {
	role, _, _ := strings.Cut(strings.SplitAfterN(manifests, "---\n", 2)[1], "---\n")
	policy, _ := read(t, role)
	for text, want := range map[string]bool{"list //configmaps": true, "delete //configmaps a/x": false} {
		if got, _, _ := policy.Authorize(context.Background(), ask("a/b", text)); (got == authorizer.DecisionAllow) != want {
			t.Errorf("%s: %s, want allowed: %t", text, got, want)
		}
	}
}
