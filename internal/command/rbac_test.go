// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/permission"
	"github.com/ctrlkit/ctrlkit/sim/apiserver/rbac"
)

// guide is the package of a reconciler that knows nothing of ctrlkit, with a simulation.
const guide = "../../sim/testdata/guide"

// runRBAC runs the command on the guide, and returns what it prints and its exit code.
func runRBAC(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	cmd := newRBACCommand()
	var out, problems bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&problems)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--without-faults", guide))
	cmd.SetContext(t.Context())
	err := cmd.Execute()
	var exit *exitError
	if err != nil && (!errors.As(err, &exit) || exit.err != nil) {
		t.Fatalf("%v: %s", err, problems.String())
	}
	return out.String(), exitCode(err)
}

// The rules of any operator follow from the requests of its simulation, with its lines of code, and
// a role that is made of them fits.
func TestRBACOfAnyOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a simulation")
	}
	table, _ := runRBAC(t)
	for _, want := range []string{
		`(?m)^RESOURCE +VERBS +ASKED BY$`,
		`(?m)^deployments\.apps +watch +the cache\n +create +sim/testdata/guide/controller\.go:\d+$`,
	} {
		if !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("the table does not match %s:\n%s", want, table)
		}
	}

	role, _ := runRBAC(t, "-o", "yaml", "--name", "guide")
	dir := t.TempDir()
	complete := filepath.Join(dir, "config", "rbac", "role.yaml")
	if err := os.MkdirAll(filepath.Dir(complete), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(complete, []byte(role), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, code := runRBAC(t, "--check", complete, "--strict"); code != 0 {
		t.Errorf("the role that was printed does not fit:\n%s", text)
	}

	// One verb less, and a rule more that a marker requests.
	other := strings.Replace(role, "  - create\n", "", 1) + "- {apiGroups: [batch], resources: [jobs], verbs: [delete]}\n"
	if err := os.WriteFile(complete, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	marker := "package op\n\n// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=delete\n"
	if err := os.WriteFile(filepath.Join(dir, "op.go"), []byte(marker), 0o600); err != nil {
		t.Fatal(err)
	}
	text, code := runRBAC(t, "--check", complete)
	for _, want := range []string{
		`missing  no rule allows \S+ to create deployments.apps in namespace default`, `\n +or the marker: // \+kubebuilder:rbac:groups=apps,resources=deployments,verbs=create\n`,
		`asked by sim/testdata/guide/controller\.go:\d+`, `unused   \S*role\.yaml:\d+: \{apiGroups: \[batch\], resources: \[jobs\], verbs: \[delete\]\}`,
		`requested by \S*op\.go:3: // \+kubebuilder:rbac`, `1 missing, 1 unused`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("the comparison does not match %s:\n%s", want, text)
		}
	}
	if code != exitFound {
		t.Errorf("the exit code is %d, want %d", code, exitFound)
	}
	checkJSON(t, complete)
}

func checkJSON(t *testing.T, file string) {
	t.Helper()
	text, code := runRBAC(t, "--check", file, "-o", "json")
	var d struct {
		Needs      []permission.Need
		Comparison rbac.Comparison
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Needs) == 0 || len(d.Comparison.Missing) != 1 || len(d.Comparison.Unused) != 1 || code != exitFound {
		t.Errorf("code %d, %d needs, %v", code, len(d.Needs), d.Comparison)
	}
}
