// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package exampletest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

const roleFile = "config/rbac/role.yaml"

// An Engine declares what it needs.
type Engine interface {
	Needs() ([]permission.Need, error)
}

// Needs returns what the engine of an operator declares, and what the operator asks for in a
// simulation. Add adds the controller.
func Needs[E Engine](t *testing.T, w sim.Workload, add func(ctrl.Manager, *sim.Process) (E, error)) (declared, used []permission.Need) {
	t.Helper()
	w.Operator = func(ctx context.Context, p *sim.Process) error {
		options := p.ManagerOptions()
		options.Scheme = w.Scheme
		mgr, err := ctrl.NewManager(p.Config(), options)
		if err != nil {
			return err
		}
		engine, err := add(mgr, p)
		if err != nil {
			return err
		}
		if declared, err = engine.Needs(); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	used = sim.Needs(t, w)
	return declared, used
}

// CheckRole checks that what an engine declares, and what its operator asks for, are the same, and
// that the role allows that and no more.
func CheckRole(t *testing.T, declared, used []permission.Need) {
	t.Helper()
	policy, err := sim.ReadRoles("config/rbac")
	Must(t, err)
	operator, err := policy.Account("")
	Must(t, err)
	for name, needs := range map[string][]permission.Need{"declared": declared, "used": used} {
		c := policy.Compare(operator, needs)
		for _, m := range c.Missing {
			t.Errorf("%s by %q: %s", name, m.By, m.Text)
		}
		for _, g := range c.Unused {
			t.Errorf("not %s: %s", name, g)
		}
	}
}

// CheckRoleIsMinimal checks that whatever is taken out of the role is missing, by name, and that
// whatever is added is unused.
func CheckRoleIsMinimal(t *testing.T, declared []permission.Need) {
	t.Helper()
	role := readRole(t)
	for _, n := range permission.WithReads(declared) {
		c := compare(t, without(role, n), declared)
		if len(c.Missing) != 1 || c.Missing[0].String() != n.String() {
			t.Errorf("without the permission to %s, missing are %v", n, c.Missing)
		}
	}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"delete"}})
	if c := compare(t, role, declared); len(c.Unused) != 1 || c.Unused[0].String() != "{apiGroups: [batch], resources: [jobs], verbs: [delete]}" {
		t.Errorf("with a rule for Jobs, unused are %v", c.Unused)
	}
}

func readRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile(roleFile)
	Must(t, err)
	role := &rbacv1.ClusterRole{}
	Must(t, yaml.UnmarshalStrict(data, role))
	return role
}

// without returns a role that does not allow what is needed.
func without(role *rbacv1.ClusterRole, n permission.Need) *rbacv1.ClusterRole {
	less := &rbacv1.ClusterRole{TypeMeta: role.TypeMeta, ObjectMeta: role.ObjectMeta}
	for _, r := range role.Rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					if group != n.Group || resource != n.Resource || verb != n.Verb {
						less.Rules = append(less.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}})
					}
				}
			}
		}
	}
	return less
}

func compare(t *testing.T, role *rbacv1.ClusterRole, needs []permission.Need) sim.RolesComparison {
	t.Helper()
	policy, err := sim.NewRoles(role)
	Must(t, err)
	anyone, err := policy.Account("")
	Must(t, err)
	return policy.Compare(anyone, needs)
}

// CheckRefusals checks that an operator whose role lacks what it uses is refused, and that the
// simulation names the rule.
func CheckRefusals(t *testing.T, workload func(*testing.T) sim.Workload, used []permission.Need) {
	t.Helper()
	if os.Getenv(sim.RBACVariable) != "" {
		t.Skip("ctrlkit rbac lets the operator do everything")
	}
	rings.Test(t, "simulates an operator for each rule")
	role := readRole(t)
	for _, n := range used {
		t.Run(strings.ReplaceAll(n.String(), "/", " "), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "role.yaml")
			data, err := yaml.Marshal(without(role, n))
			Must(t, err)
			Must(t, os.WriteFile(file, data, 0o600))
			w := workload(t)
			w.RBAC = []string{file}
			report := sim.Explore(t, w, sim.WithStopOn(sim.OracleAllowed))
			if report == nil {
				return // a worker of the simulation
			}
			rule := permission.Markers(permission.Rules([]permission.Need{{Group: n.Group, Resource: n.Resource, Verb: n.Verb}}))
			for _, f := range report.Findings {
				if f.Violation.Oracle == sim.OracleAllowed && strings.Contains(f.Violation.Text, strings.TrimSpace(rule)) {
					return
				}
			}
			t.Errorf("no finding names the missing rule %s: %v", rule, report.Findings)
		})
	}
}
