// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// permissionTwins are an operator whose rules lack one that it needs, and one with all of them.
func permissionTwins(wrong bool) Workload {
	w := deploymentWorkload(func(ctx context.Context, o *operation) error {
		if o.obj.DeletionTimestamp != nil {
			return nil
		}
		return o.createChild(ctx)
	})
	w.RBAC = []string{"testdata/rbac/complete"}
	if wrong {
		w.RBAC = []string{"testdata/rbac/incomplete"}
	}
	return w
}

const missingRule = `no rule allows system:serviceaccount:system:controller-manager to create configmaps in namespace default
  add the rule: {apiGroups: [""], resources: [configmaps], verbs: [create]}
  or the marker: // +kubebuilder:rbac:groups="",resources=configmaps,verbs=create`

func TestPermissions(t *testing.T) {
	tests := map[string]struct {
		rbac    []string
		account string
		want    string // the account, or the error
	}{
		"everything":       {nil, "", ""},
		"the bound one":    {[]string{"testdata/rbac/complete"}, "", "system:serviceaccount:system:controller-manager"},
		"another":          {[]string{"testdata/rbac/complete"}, "a/b", "system:serviceaccount:a:b"},
		"without bindings": {[]string{"testdata/rbac/complete/role.yaml"}, "", "system:serviceaccount:default:operator"},
		"no file":          {[]string{"testdata/rbac/none"}, "", "reading Workload.RBAC"},
		"no namespace":     {[]string{"testdata/rbac/complete"}, "b", "want namespace/name"},
		"account only":     {nil, "a/b", "has no effect without Workload.RBAC"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := permissionsOf(&Workload{RBAC: test.rbac, ServiceAccount: test.account})
			got := ""
			if err != nil {
				got = err.Error()
			} else if p.account != nil {
				got = p.account.GetName()
			}
			if !strings.Contains(got, test.want) || got != "" && test.want == "" {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Rules that no run without faults uses are listed, and are no finding. Those for Leases are left
// out: few operators elect a leader in a simulation. Those that a controller asks for which does not
// run are not said to be unused.
func TestUnusedRules(t *testing.T) {
	const statefulSets = "{apiGroups: [apps], resources: [statefulsets], verbs: [get, delete]}"
	project := t.TempDir()
	generous, err := os.ReadFile("testdata/rbac/generous/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module ship\n", "config/rbac/role.yaml": string(generous),
		"wheel.go": "// +kubebuilder:rbac:groups=\"\",resources=configmaps/status,verbs=get\n",
		"captain.go": "// +kubebuilder:rbac:groups=crew.example.com,resources=captains/status,verbs=patch\n" +
			"// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;delete\n",
	} {
		file := filepath.Join(project, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for files, want := range map[string]struct{ unused, unchecked string }{
		"testdata/rbac/complete": {}, "testdata/rbac/generous": {unused: statefulSets},
		filepath.Join(project, "config/rbac"): {unchecked: "1 for " + filepath.Join(project, "captain.go")},
	} {
		w := permissionTwins(false)
		w.RBAC = []string{files}
		ref, first, err := findReference(t, &w, nil, newSettings(nil))
		if err != nil || len(first.violations) > 0 {
			t.Fatal(err, first.violations)
		}
		unused, unchecked := ref.rules(&w)
		if got := strings.Join(unused, ", "); got != want.unused {
			t.Errorf("%s: unused are %s, want %s", files, got, want.unused)
		}
		if got := strings.Join(unchecked, ", "); got != want.unchecked {
			t.Errorf("%s: unchecked are %s, want %s", files, got, want.unchecked)
		}
		s := report.Simulation{UnusedRules: unused, UncheckedRules: unchecked}
		text := s.Summary()
		if strings.Contains(text, "does not need: remove them") != (want.unused != "") || strings.Contains(text, "does not run their controllers: 1 for") != (want.unchecked != "") {
			t.Errorf("%s: the summary is %s", files, text)
		}
	}
}
