// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/ctrlkit/ctrlkit/internal/cluster/markers"
	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
)

// rbacOptions are the flags of ctrlkit rbac.
type rbacOptions struct {
	simulations   simOptions
	output        *choice
	check         []string
	account       string
	name          string
	withoutFaults bool
	strict        bool
}

// newRBACCommand returns the command that prints and checks the permissions of an operator.
func newRBACCommand() *cobra.Command {
	var o rbacOptions
	cmd := &cobra.Command{
		Use:   "rbac [flags] [PACKAGE...]",
		Short: "Print the RBAC rules that an operator needs, and check its roles",
		Long: `Rbac runs the tests of packages that call sim.Run, and prints what their operators need permissions for, by the
requests that they make: with the line of code that makes them, as a role, or as markers for controller-gen. The
operators may do everything meanwhile, so that a missing rule does not hide what is needed after it.

With --check it compares that with the roles in files, in both directions:

  missing    the operator makes a request that no rule allows
  unused     no request needs what a rule allows: remove it, or let the simulation do what needs it
  unchecked  the same for Kubernetes events, Leases and reviews, whose use need not show in a simulation, and for what
             markers in the file of a controller ask for that no simulation runs

A rule for the finalizers of a kind is needed by an operator that sets owner references which block the deletion of
their owner, where the admission plugin OwnerReferencesPermissionEnforcement is on, as in OpenShift. Get, list and watch
count as one: who may list or watch a resource can read all of it.

Exit codes: 0 no rule is missing (with --strict: nor unused), 1 otherwise, or no simulation has ended, 2 wrong usage.`,
		Example: `  ctrlkit rbac ./internal/controller                               what the operator needs, and who asks for it
  ctrlkit rbac -o yaml > config/rbac/role.yaml                     a role that allows that and no more
  ctrlkit rbac -o markers --without-faults                         markers, from the runs without faults alone
  ctrlkit rbac --check config/rbac/role.yaml --strict              for CI: fail on missing and on unused rules`,
		Args: packagePatterns,
		RunE: func(cmd *cobra.Command, packages []string) error {
			if len(packages) == 0 {
				packages = []string{"."}
			}
			if err := o.validate(); err != nil {
				return usageError(err)
			}
			return o.execute(cmd, packages)
		},
	}
	set := cmd.Flags()
	o.output = outputFlag(cmd, "table", "yaml", "markers", "json")
	set.StringArrayVar(&o.check, "check", nil, "compare with the roles and bindings in this `FILE` or directory, repeatable")
	set.StringVar(&o.account, "service-account", "", "the `NAMESPACE/NAME` to check, if the bindings name several")
	set.StringVar(&o.name, "name", "manager-role", "the `NAME` of the role that -o yaml prints")
	set.BoolVar(&o.strict, "strict", false, "with --check, fail on unused rules, too")
	set.BoolVar(&o.withoutFaults, "without-faults", false, "use the runs without faults alone: faster, and without what is needed after a fault")
	set.StringVar(&o.simulations.run, "run", "", "run only the tests whose names match this regular `EXPRESSION`")
	set.DurationVar(&o.simulations.timeout, "timeout", 30*time.Minute, "end each package's simulations before this `TIME` is over")
	_ = cmd.MarkFlagFilename("check", "yaml", "yml", "json")
	return cmd
}

// validate checks the flags, and reads the roles that they name, before anything is compiled.
func (o rbacOptions) validate() error {
	switch {
	case len(o.check) == 0 && o.strict:
		return errors.New("--strict needs --check: there is nothing to compare")
	case len(o.check) == 0 && o.account != "":
		return errors.New("--service-account needs --check: it says whose roles are compared")
	case len(o.check) > 0 && (o.output.value == "yaml" || o.output.value == "markers"):
		return fmt.Errorf("--check prints a comparison, not %s: want -o table or -o json", o.output.value)
	case len(o.check) == 0:
		return nil
	}
	_, _, err := o.roles()
	return err
}

// roles reads the roles to check, and for whom.
func (o rbacOptions) roles() (*rbac.Policy, user.Info, error) {
	policy, err := rbac.Read(o.check...)
	if err != nil {
		return nil, nil, fmt.Errorf("--check: %w%s", err, o.kustomized())
	}
	who, err := policy.Account(o.account)
	if err != nil {
		return nil, nil, fmt.Errorf("--service-account: %w%s", err, o.kustomized())
	}
	return policy, who, nil
}

// kustomized returns what to do about roles and bindings that do not fit together, if kustomize gives
// them their names and namespaces later.
func (o rbacOptions) kustomized() string {
	for _, name := range o.check {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			name = filepath.Dir(name)
		}
		if _, err := os.Stat(filepath.Join(name, "kustomization.yaml")); err == nil {
			return fmt.Sprintf("\n%s is completed by kustomize, which may set names and namespaces: check what it prints, with\n"+
				"  kubectl kustomize %s >roles.yaml && ctrlkit rbac --check roles.yaml", name, filepath.Join(filepath.Dir(name), "default"))
		}
	}
	return ""
}

func (o rbacOptions) execute(cmd *cobra.Command, packages []string) error {
	needs, err := o.simulate(cmd, packages)
	if err != nil {
		return err
	}
	return o.report(cmd, needs)
}

// report prints needs, or compares roles with them.
func (o rbacOptions) report(cmd *cobra.Command, needs []permission.Need) error {
	out := &rbacPrinter{w: cmd.OutOrStdout(), color: isTerminal(cmd.OutOrStdout()) && os.Getenv("NO_COLOR") == ""}
	if len(o.check) == 0 {
		out.needs(o.output.value, o.name, needs)
		return out.err
	}
	policy, who, err := o.roles()
	if err != nil {
		return problemError(err)
	}
	c := policy.Compare(who, needs)
	requesting, err := markers.For(o.check)
	if err != nil {
		return problemError(err)
	}
	c.Uncheck(markers.Unrun(requesting, needs))
	if o.output.value == "json" {
		out.json(map[string]any{"needs": needs, "comparison": c})
	} else {
		out.comparison(c, requesting)
	}
	switch {
	case out.err != nil:
		return out.err
	case len(c.Missing) > 0, o.strict && len(c.Unused) > 0:
		return &exitError{code: exitFound}
	}
	return nil
}

// The environment variables of package sim that let the operator do everything, and leave out the
// faults.
const (
	rbacVariable   = "CTRLKIT_SIM_RBAC"
	faultsVariable = "CTRLKIT_SIM_FAULTS"
)

// simulate runs the simulations of packages, and returns what their operators have needed.
func (o rbacOptions) simulate(cmd *cobra.Command, packages []string) ([]permission.Need, error) {
	dir, err := os.MkdirTemp("", "ctrlkit-rbac-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the reports: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the temporary directory
	settings := []string{rbacVariable + "=none"}
	if o.withoutFaults {
		settings = append(settings, faultsVariable+"=none")
	}
	var output bytes.Buffer
	_, testErr, err := o.simulations.test(cmd, packages, dir, &output, &output, settings...)
	if err != nil {
		return nil, err
	}
	if cmd.Context().Err() != nil {
		return nil, context.Cause(cmd.Context())
	}
	var exit *exec.ExitError
	if testErr != nil && !errors.As(testErr, &exit) {
		return nil, fmt.Errorf("running go test: %w", testErr)
	}
	d, err := readReports(dir)
	if err != nil {
		return nil, problemError(err)
	}
	var needs []permission.Need
	for i := range d.Simulations {
		needs = permission.Merge(needs, d.Simulations[i].Needs)
	}
	switch {
	case len(needs) == 0 && testErr != nil:
		return nil, problemError(fmt.Errorf("the tests have failed before a simulation has ended:\n%s", indent(strings.TrimSpace(output.String()))))
	case len(needs) == 0:
		return nil, problemError(fmt.Errorf("no simulation has ended: does a test of %s call sim.Run?", strings.Join(packages, " ")))
	case testErr != nil:
		fmt.Fprintln(cmd.ErrOrStderr(), "the tests have failed, so that needs may be missing here: ctrlkit sim shows what is wrong")
	}
	return needs, nil
}
