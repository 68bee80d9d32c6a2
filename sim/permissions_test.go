// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
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
// out: few operators elect a leader in a simulation.
func TestUnusedRules(t *testing.T) {
	const statefulSets = "{apiGroups: [apps], resources: [statefulsets], verbs: [get, delete]}"
	for files, want := range map[string][]string{"complete": nil, "generous": {statefulSets}} {
		w := permissionTwins(false)
		w.RBAC = []string{"testdata/rbac/" + files}
		ref, first, err := findReference(t, &w, nil, newSettings(nil))
		if err != nil || len(first.violations) > 0 {
			t.Fatal(err, first.violations)
		}
		if !slices.Equal(ref.unused, want) {
			t.Errorf("%s: unused are %v, want %v", files, ref.unused, want)
		}
		s := report.Simulation{UnusedRules: ref.unused}
		if text := s.Summary(); strings.Contains(text, statefulSets) != (want != nil) || strings.Contains(text, "does not need") != (want != nil) {
			t.Errorf("%s: the summary is %s", files, text)
		}
	}
}
