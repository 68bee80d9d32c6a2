// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/permission"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/sim/apiserver/rbac"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// What the engine declares and what the operator asks for in a simulation are the same, and the role
// allows that and no more.
func TestRoleIsWhatTheOperatorNeeds(t *testing.T) {
	declared, used := needsOf(t)
	policy, err := rbac.Read("config/rbac")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := policy.Account("")
	if err != nil {
		t.Fatal(err)
	}
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

// needsOf returns what the engine of the operator declares, and what the operator asks for.
func needsOf(t *testing.T) (declared, used []permission.Need) {
	t.Helper()
	w := simWorkload(t)
	w.Operator = func(ctx context.Context, p *sim.Process) error {
		options := p.ManagerOptions()
		options.Scheme = w.Scheme
		mgr, err := ctrl.NewManager(p.Config(), options)
		if err != nil {
			return err
		}
		engine, err := addController(mgr)
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

// Whatever is taken out of the role is missing, by name, and whatever is added is unused.
func TestRoleIsMinimal(t *testing.T) {
	declared, _ := needsOf(t)
	role := readRole(t)
	for _, n := range permission.WithReads(declared) {
		c := compare(t, without(role, n), declared)
		if len(c.Missing) != 1 || c.Missing[0].String() != n.String() {
			t.Errorf("without the permission to %s, missing are %v", n, c.Missing)
		}
	}
	more := role.DeepCopy()
	more.Rules = append(more.Rules, rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"delete"}})
	if c := compare(t, more, declared); len(c.Unused) != 1 || c.Unused[0].String() != "{apiGroups: [batch], resources: [jobs], verbs: [delete]}" {
		t.Errorf("with a rule for Jobs, unused are %v", c.Unused)
	}
}

func readRole(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	data, err := os.ReadFile("config/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(data, role); err != nil {
		t.Fatal(err)
	}
	return role
}

// without returns a role that does not allow what is needed.
func without(role *rbacv1.ClusterRole, n permission.Need) *rbacv1.ClusterRole {
	less := &rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta}
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

func compare(t *testing.T, role *rbacv1.ClusterRole, needs []permission.Need) rbac.Comparison {
	t.Helper()
	policy, err := rbac.New(role)
	if err != nil {
		t.Fatal(err)
	}
	anyone, err := policy.Account("")
	if err != nil {
		t.Fatal(err)
	}
	return policy.Compare(anyone, needs)
}

// An operator whose role lacks what it uses is refused, and the simulation names the rule.
func TestSimulationNamesTheMissingRule(t *testing.T) {
	if os.Getenv(sim.RBACVariable) != "" {
		t.Skip("ctrlkit rbac lets the operator do everything")
	}
	_, used := needsOf(t)
	role := readRole(t)
	for i, n := range used {
		t.Run(strings.ReplaceAll(n.String(), "/", " "), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "role.yaml")
			data, err := yaml.Marshal(without(role, used[i]))
			if err != nil {
				t.Fatal(err)
			}
			header := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
			if err := os.WriteFile(file, append([]byte(header), data...), 0o600); err != nil {
				t.Fatal(err)
			}
			w := simWorkload(t)
			w.RBAC = []string{file}
			report := sim.Explore(t, w, sim.WithStopOn(oracle.Allowed))
			if report == nil {
				return // a worker of the simulation
			}
			rule := permission.Markers(permission.Rules([]permission.Need{{Group: n.Group, Resource: n.Resource, Verb: n.Verb}}))
			for _, f := range report.Findings {
				if f.Violation.Oracle == oracle.Allowed && strings.Contains(f.Violation.Text, strings.TrimSpace(rule)) {
					return
				}
			}
			t.Errorf("no finding names the missing rule %s: %v", rule, report.Findings)
		})
	}
}
