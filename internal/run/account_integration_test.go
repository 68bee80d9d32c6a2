// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The role of the test's operator, a rule on a line.
const (
	greeterAccount = `apiVersion: v1
kind: ServiceAccount
metadata: {name: greeter, namespace: greeter-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: greeter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: greeter}
subjects: [{kind: ServiceAccount, name: greeter, namespace: greeter-system}]
`
	greeterRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: greeter}
rules:
- {apiGroups: [test.ctrlkit.dev], resources: [greeters], verbs: [get, list, watch]}
- {apiGroups: [test.ctrlkit.dev], resources: [greeters/status], verbs: [update]}
- {apiGroups: [test.ctrlkit.dev], resources: [greeters/finalizers], verbs: [update]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch]}
- {apiGroups: [batch], resources: [jobs], verbs: [create]}
`
)

// rbacDir returns a directory with the account and a role.
func rbacDir(t *testing.T, role string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"account.yaml": greeterAccount, "role.yaml": role} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The operator does its work with the permissions of its ServiceAccount, and what it has not used is
// listed.
func TestRunAsServiceAccount(t *testing.T) {
	dir := rbacDir(t, greeterRole+"- {apiGroups: [\"\"], resources: [configmaps], verbs: [get, delete]}\n")
	r := start(t, buildCommand(t), "--as-service-account", "--rbac", dir, "--until", "greeter/world:status.phase=Greeted", "--timeout", "1m")
	if code := r.end(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{
		"ServiceAccount greeter-system/greeter, with the rules of ",
		"unused: " + filepath.Join(dir, "role.yaml") + `:10: {apiGroups: [""], resources: [configmaps], verbs: [get, delete]}`,
	} {
		if !strings.Contains(r.stderr.String(), want) {
			t.Errorf("standard error does not say %q", want)
		}
	}
	if n := strings.Count(r.stderr.String(), "unused: "); n != 1 {
		t.Errorf("%d rules are listed as unused, want 1", n)
	}
	r.wantNoProcesses(t, 0)
}

// A rule that is missing ends the run, and is named: also the one that only some clusters ask for.
func TestRunNamesTheMissingRule(t *testing.T) {
	program := buildCommand(t)
	for rule, want := range map[string]string{
		"- {apiGroups: [batch], resources: [jobs], verbs: [create]}\n":                           "// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=create\n",
		"- {apiGroups: [test.ctrlkit.dev], resources: [greeters/finalizers], verbs: [update]}\n": "// +kubebuilder:rbac:groups=test.ctrlkit.dev,resources=greeters/finalizers,verbs=update\n",
	} {
		r := start(t, program, "--as-service-account", "--rbac", rbacDir(t, strings.Replace(greeterRole, rule, "", 1)), "--for", "1m")
		if code := r.end(t); code != 1 {
			t.Errorf("without %s: exit code %d, want 1", rule, code)
		}
		if n := strings.Count(r.stderr.String(), "no rule allows system:serviceaccount:greeter-system:greeter to "); n != 1 || !strings.Contains(r.stderr.String(), want) {
			t.Errorf("without %s: standard error names %d missing rules, want one with %q", rule, n, want)
		}
		r.wantNoProcesses(t, 0)
	}
}
