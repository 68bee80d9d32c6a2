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

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// reported returns what o prints when a simulation has shown needs, and its exit code.
func reported(t *testing.T, o rbacOptions, needs []permission.Need) (stdout string, code int) {
	t.Helper()
	var out bytes.Buffer
	cmd := newRBACCommand()
	cmd.SetOut(&out)
	err := o.report(cmd, needs)
	var exit *exitError
	if err != nil && (!errors.As(err, &exit) || exit.err != nil) {
		t.Fatal(err)
	}
	return out.String(), exitCode(err)
}

func wantMatches(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, want := range patterns {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("it does not match %s:\n%s", want, text)
		}
	}
}

// The rules of any operator follow from the requests of its simulation, with its lines of code, and
// a role that is made of them fits. The operator here is a reconciler that knows nothing of ctrlkit.
func TestRBACOfAnyOperator(t *testing.T) {
	rings.Test(t, "compiles a simulation")
	printed, _, err := execute(t, "", "rbac", "-o", "json", "--without-faults", "../../sim/testdata/guide")
	var d struct {
		Needs      []permission.Need
		Comparison rbac.Comparison
	}
	must(t, errors.Join(err, json.Unmarshal([]byte(printed), &d)))
	table, _ := reported(t, rbacOptions{output: &choice{value: "table"}}, d.Needs)
	wantMatches(t, table, `(?m)^RESOURCE +VERBS +ASKED BY$`, `(?m)^deployments\.apps +watch +the cache\n +create +sim/testdata/guide/controller\.go:\d+$`)

	role, _ := reported(t, rbacOptions{output: &choice{value: "yaml"}, name: "guide"}, d.Needs)
	complete := writeDocument(t, "config/rbac/role.yaml", role)
	if text, code := reported(t, rbacOptions{output: &choice{value: "table"}, check: []string{complete}, strict: true}, d.Needs); code != 0 {
		t.Errorf("the role that was printed does not fit:\n%s", text)
	}

	// One verb less, and a rule more that a marker requests.
	other := strings.Replace(role, "  - create\n", "", 1) + "- {apiGroups: [batch], resources: [jobs], verbs: [delete]}\n"
	marker := "package op\n\n// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=delete\n"
	for name, text := range map[string]string{complete: other, filepath.Join(complete, "../../../go.mod"): "module op\n", filepath.Join(complete, "../../../op.go"): marker} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	text, code := reported(t, rbacOptions{output: &choice{value: "table"}, check: []string{complete}}, d.Needs)
	wantMatches(t, text,
		`missing  no rule allows \S+ to create deployments.apps in namespace default`, `\n +or the marker: // \+kubebuilder:rbac:groups=apps,resources=deployments,verbs=create\n`,
		`asked by sim/testdata/guide/controller\.go:\d+`, `unused   \S*role\.yaml:\d+: \{apiGroups: \[batch\], resources: \[jobs\], verbs: \[delete\]\}`,
		`requested by \S*op\.go:3: // \+kubebuilder:rbac`, `1 missing, 1 unused`)
	if code != exitFound {
		t.Errorf("the exit code is %d, want %d", code, exitFound)
	}
	printed, code = reported(t, rbacOptions{output: &choice{value: "json"}, check: []string{complete}}, d.Needs)
	if err := json.Unmarshal([]byte(printed), &d); err != nil || len(d.Needs) == 0 || len(d.Comparison.Missing) != 1 || len(d.Comparison.Unused) != 1 || code != exitFound {
		t.Errorf("code %d, %d needs, %v, %v", code, len(d.Needs), d.Comparison, err)
	}
}

// Markers to paste have all verbs of a resource. One alone needs no summary.
func TestMissingRulesAsMarkers(t *testing.T) {
	missed := func(verb string) rbac.Missed {
		return rbac.Missed{Need: permission.Need{Group: "apps", Resource: "deployments", Verb: verb}, Text: "no rule allows it to " + verb}
	}
	const summary = "\nwhat is missing, in as few markers as possible; -o markers prints all that the operator needs:\n" +
		"  // +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;patch\n"
	for want, list := range map[int][]rbac.Missed{0: {missed("create")}, 1: {missed("create"), missed("patch")}} {
		var out bytes.Buffer
		(&rbacPrinter{w: &out}).comparison(rbac.Comparison{Missing: list}, nil)
		if got := out.String(); strings.Count(got, summary) != want || strings.Count(got, "+kubebuilder") != want {
			t.Errorf("%d missing: got\n%s", len(list), got)
		}
	}
}

// What only a controller asks for that no simulation runs is no finding, also with --strict.
func TestRulesOfControllersWithoutASimulation(t *testing.T) {
	roles := writeDocument(t, "config/rbac/role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: manager}\nrules:\n"+
		"- {apiGroups: [crew], resources: [captains, wheels], verbs: [get]}\n")
	project := filepath.Dir(filepath.Dir(filepath.Dir(roles)))
	must(t, os.WriteFile(filepath.Join(project, "go.mod"), []byte("module crew\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(project, "captain_controller.go"),
		[]byte("// +kubebuilder:rbac:groups=crew,resources=captains,verbs=get\n// +kubebuilder:rbac:groups=crew,resources=captains/status,verbs=patch\n"), 0o600))
	needs := []permission.Need{{Group: "crew", Resource: "wheels", Verb: "get"}}
	text, code := reported(t, rbacOptions{output: &choice{value: "table"}, check: []string{roles}, strict: true}, needs)
	wantMatches(t, text, `unchecked  \S*role\.yaml:5: \{apiGroups: \[crew\], resources: \[captains\], verbs: \[get\]\}: no simulation runs \S*captain_controller\.go`, `no rule is missing or unused; 1 unchecked`)
	if code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

// Lists and watches of one object by its name are printed with it, and the role with the name fits.
func TestRBACOfSingleObjects(t *testing.T) {
	var needs []permission.Need
	for _, verb := range []string{"list", "watch"} {
		needs = append(needs,
			permission.Need{Resource: "secrets", Verb: verb, Targets: []permission.Target{{Namespace: "kube-system", Name: "settings"}}, By: []string{"the cache"}},
			permission.Need{Resource: "pods", Verb: verb, Targets: []permission.Target{{}}, By: []string{"the cache"}})
	}
	needs = permission.Merge(needs)
	table, _ := reported(t, rbacOptions{output: &choice{value: "table"}}, needs)
	wantMatches(t, table, `(?m)^secrets named settings +list watch +the cache$`, `(?m)^pods +list watch +the cache$`)
	role, _ := reported(t, rbacOptions{output: &choice{value: "yaml"}, name: "single"}, needs)
	wantMatches(t, role, `resourceNames:\n  - settings\n  resources:\n  - secrets\n`)
	file := writeDocument(t, "role.yaml", role)
	if text, code := reported(t, rbacOptions{output: &choice{value: "table"}, check: []string{file}, strict: true}, needs); code != 0 {
		t.Errorf("the role that was printed does not fit:\n%s", text)
	}
	needs[len(needs)-1].Targets[0].Name = "" // the watch of Secrets
	if text, code := reported(t, rbacOptions{output: &choice{value: "table"}, check: []string{file}}, needs); code != exitFound {
		t.Errorf("a role for one object fits a list of all:\n%s", text)
	}
}
