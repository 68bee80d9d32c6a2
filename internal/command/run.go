// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// runFlags are the flags of "ctrlkit run".
type runFlags struct {
	options run.Options
	on      string
	logs    string
}

// showLogs is the value of --logs without a value.
const showLogs = "-"

func newRunCommand() *cobra.Command {
	flags := new(runFlags)
	cmd := &cobra.Command{
		Use:   "run PACKAGE [flags] [-- OPERATOR-ARGUMENTS]",
		Short: "Run an operator, in memory or on a real control plane, and watch its objects",
		Long: `Run builds the operator in PACKAGE, runs it, and shows the states of its objects and their children until Ctrl-C, which
stops all processes that it started.

PACKAGE is the operator's main package: a directory (in any module), a file in it, or an import path. A directory that
is no main package stands for the directory cmd in it. --on says where it runs:

  controlplane  a real control plane: API server, controllers, scheduler, and a node whose Pods become ready without
                running. The first run builds it, which takes minutes. This is the default
  memory        an API server in memory, at once. Jobs complete, Deployments become available, and the garbage
                collector works, but no container runs, no webhook is called, and RBAC is not enforced
  cluster       one that is there: the current context of kubectl, or what --context and
                --kubeconfig name, which imply it. Run prints its name and address first. What it
                installs and applies there remains

By convention, run installs the custom resource definitions in config/crd/bases or config/crd, and applies the objects
in config/samples. It looks for these directories from PACKAGE up to the root of its module.

The operator is an administrator, unless --as-service-account runs it as the ServiceAccount that the bindings in
config/rbac name. A request that no rule allows then ends the run with exit code 1, and the rule that is missing; in the
end, the rules that nothing has used are listed.

In a terminal it draws the objects as a tree and keeps it up to date. In a pipe it writes one line per change:

   12.3s  Job default/hello-28374  Complete

Exit codes:
  0    --for has passed, all conditions hold, or Ctrl-C without --until
  1    the run failed, or a condition did not hold in time
  2    wrong usage
  130  Ctrl-C during the set-up, or before the conditions held

Conditions for --until:

` + indent(run.UntilSyntax),
		Example: `  ctrlkit run --on memory ./examples/01_cronjob
  ctrlkit run ./examples/01_cronjob
  ctrlkit run ./cmd --samples demo.yaml --logs       a kubebuilder project, with the operator's log
  ctrlkit run ./cmd -- --metrics-bind-address=0      arguments for the operator
  ctrlkit run . --for 30s | tee changes.txt          the changes of half a minute
  ctrlkit run . --until 'job/*=Complete' --timeout 2m
  ctrlkit run . --until 'job=Complete count >= 3' --until 'cronjob/hello:status.lastScheduleTime'
  ctrlkit run . --as-service-account --for 1m        fail on a missing RBAC rule, and list those that nothing used
  ctrlkit run . --context kind-dev                   in a cluster that is there`,
		Args: packageArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	flags.declare(cmd)
	return cmd
}

// declare declares the flags of the command.
func (f *runFlags) declare(cmd *cobra.Command) {
	o := &f.options
	set := cmd.Flags()
	set.StringVar(&f.on, "on", string(run.OnControlPlane), "run on `WHAT`: a controlplane, memory, or a cluster that is there")
	clusterFlags(set, &o.Kubeconfig)
	set.StringArrayVar(&o.CRDs, "crds", nil, "`DIR` or file with the custom resource definitions to install, repeatable")
	set.StringArrayVar(&o.Samples, "samples", nil, "`FILE` or directory with objects to apply, repeatable")
	set.BoolVar(&o.NoSamples, "no-samples", false, "apply no objects")
	set.StringVarP(&o.Namespace, "namespace", "n", "default", "`NAMESPACE` of samples that have none")
	set.StringArrayVar(&o.Watch, "watch", nil, "also show the objects of this `KIND`, repeatable")
	set.StringVar(&o.AsAccount, "as-service-account", "", "run the operator as its ServiceAccount, which may do only what config/rbac allows; `NAMESPACE/NAME` if the bindings name several")
	set.Lookup("as-service-account").NoOptDefVal = run.OnlyAccount
	set.StringArrayVar(&o.RBAC, "rbac", nil, "`DIR` or file with the roles and bindings for --as-service-account, repeatable")
	set.StringVar(&f.logs, "logs", "", "show the operator's log, or with --logs=`FILE` write it to a file")
	set.Lookup("logs").NoOptDefVal = showLogs
	set.DurationVar(&o.For, "for", 0, "end with exit code 0 after this `DURATION`")
	set.StringArrayVar(&o.Until, "until", nil, "end with exit code 0 when this `CONDITION` holds; repeatable, all must hold")
	set.DurationVar(&o.Timeout, "timeout", 0, "end with exit code 1 if the conditions do not hold after this `DURATION`")
	_ = cmd.MarkFlagDirname("crds")
	_ = cmd.MarkFlagFilename("samples", "yaml", "yml", "json")
	_ = cmd.RegisterFlagCompletionFunc("on", cobra.FixedCompletions([]string{string(run.OnMemory), string(run.OnControlPlane), string(run.OnCluster)}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("watch", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("until", cobra.NoFileCompletions)
}

// packageArgument checks that there is one package before the "--" of the operator's arguments.
func packageArgument(cmd *cobra.Command, args []string) error {
	packages := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		packages = dash
	}
	switch packages {
	case 1:
		return nil
	case 0:
		return errors.New("no operator given: name the directory of its main package, such as ./cmd")
	default:
		return fmt.Errorf("expected one package, not %d; put the arguments of the operator after --", packages)
	}
}

func (f *runFlags) run(cmd *cobra.Command, args []string) error {
	o := f.options
	o.Package, o.Args = args[0], args[1:]
	var err error
	if o.On, err = f.where(cmd); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	switch f.logs {
	case "":
	case showLogs:
		o.Logs = true
	default:
		o.LogFile = f.logs
	}
	if err := checkFlags(cmd, o); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	o.Supervisor = []string{self, supervisor.Name}
	o.Page = pageOfRun
	o.Out, o.Err = unchanged(cmd.OutOrStdout()), unchanged(cmd.ErrOrStderr())
	return asExit(run.Run(cmd.Context(), o), len(o.Until) > 0)
}

// where returns on which cluster to run: one that is there only if the command line names it.
// KUBECONFIG is set for kubectl, and no word that an operator is to be tried there.
func (f *runFlags) where(cmd *cobra.Command) (run.Where, error) {
	on, named := run.Where(f.on), f.options.Kubeconfig != run.Kubeconfig{}
	switch {
	case named && !cmd.Flags().Changed("on"):
		return run.OnCluster, nil
	case on != run.OnMemory && on != run.OnControlPlane && on != run.OnCluster:
		return "", fmt.Errorf("--on %s: must be %s, %s or %s", f.on, run.OnControlPlane, run.OnMemory, run.OnCluster)
	case named && on != run.OnCluster:
		return "", fmt.Errorf("--on %s excludes --kubeconfig and --context: it has a kubeconfig file of its own, which is printed", f.on)
	}
	return on, nil
}

// checkFlags checks that the flags make sense together.
func checkFlags(cmd *cobra.Command, o run.Options) error {
	if o.NoSamples && len(o.Samples) > 0 {
		return errors.New("--samples and --no-samples exclude each other")
	}
	if len(o.RBAC) > 0 && o.AsAccount == "" {
		return errors.New("--rbac has no effect without --as-service-account")
	}
	if o.For > 0 && len(o.Until) > 0 {
		return errors.New("--for and --until exclude each other; --timeout limits --until")
	}
	for name, value := range map[string]time.Duration{"for": o.For, "timeout": o.Timeout} {
		if cmd.Flags().Changed(name) && value <= 0 {
			return fmt.Errorf("--%s %v: must be more than zero", name, value)
		}
	}
	if o.Timeout > 0 && len(o.Until) == 0 {
		return errors.New("--timeout limits --until, which is missing; --for ends the run after a time")
	}
	return nil
}

// asExit gives the errors of a run their exit codes. Ctrl-C is the normal end of a run without
// conditions.
func asExit(err error, conditions bool) error {
	var syntax *run.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return &exitError{code: exitUsage, err: fmt.Errorf("--until: %w", err)}
	case errors.Is(err, run.ErrDoesNotCompile):
		return &exitError{code: exitFound}
	case errors.Is(err, run.ErrWatchingInterrupted) && !conditions:
		return nil
	default:
		return err
	}
}
