// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// The exit codes of "ctrlkit plan" and "ctrlkit diff", as terraform has them, and one more. Wrong
// usage is an error like any other, so that scripts can tell it from changes.
const (
	exitChanges    = 2
	exitIncomplete = 3
)

// planFlags are the flags of "ctrlkit plan" and "ctrlkit diff".
type planFlags struct {
	kubeconfig run.Kubeconfig
	from       []string
	files      []string
	deletes    []string
	namespace  string
	policy     []string
	env        []string
	outside    bool
	webhooks   bool
	all        bool
	logs       bool
	quiet      time.Duration
	timeout    time.Duration
	output     *choice
}

const planEnd = `
The operator runs on a copy of the cluster in memory. The cluster is only read: each kind when the operator first asks for
it, with the rights of the kubeconfig's user, who needs no more than to get and list. Leases and Events are not copied. The
operator reaches nothing but the copy (Linux): it has a network of its own, the directories of users and of sockets are
empty, but for the current one and files that an argument or --env names, and its environment is what --env sets. --outside
lets it reach the rest.

OPERATOR is a directory with a Go main package, or a program that takes its cluster from KUBECONFIG, in any language;
{kubeconfig} in an argument stands for the path of the file. A plan is made in real time: it ends when nothing new has
happened for --quiet. What the operator does later, on a timer, is not in it.

Other controllers are played: Pods become ready, Jobs complete. Webhooks and admission policies that would be asked about
what is written, and quotas, are named. --webhooks asks the webhooks, as dry runs: at their URLs, or through the API server,
for which the user needs the right to create services/proxy. What could not be read, reached or answered makes a plan
incomplete, and is named.

Exit codes: 0 nothing would change, 2 something would, 3 the plan is incomplete, 1 an error, wrong usage,
or --policy is broken.`

func newPlanCommand() *cobra.Command {
	flags := new(planFlags)
	cmd := &cobra.Command{
		Use:   "plan OPERATOR [-f CHANGE] [flags] [-- OPERATOR-ARGUMENTS]",
		Short: "Show what an operator would do to a cluster, without writing to it",
		Long: `Plan runs an operator on a copy of a cluster, makes a change there, and shows what the operator creates, changes and
deletes until it is idle, which workloads restart, and what it writes again and again. Without a change, it shows what
this operator would do at its start: run it with a new version before an upgrade.
` + planEnd,
		Example: `  ctrlkit plan ./cmd -f change.yaml                   what happens if change.yaml is applied
  ctrlkit plan ./cmd --delete database/shop -n prod   what happens if it is deleted
  ctrlkit plan ./new/cmd                              what this version does at its start
  ctrlkit plan ./bin/manager -f a.yaml -- --leader-elect=false
  ctrlkit plan python3 -f a.yaml -- operator.py --kubeconfig {kubeconfig}
  ctrlkit plan ./cmd --from cluster.yaml -f a.yaml    no cluster is read; also from the file of ctrlkit record
  ctrlkit plan ./cmd -f a.yaml --webhooks             also what admission webhooks change and refuse
  ctrlkit plan ./cmd -f a.yaml -o markdown            for a pull request
  ctrlkit plan ./cmd -f a.yaml --policy no-restart --policy no-delete=PersistentVolumeClaim`,
		Annotations: map[string]string{ownCodes: "true"},
		Args:        packageArgument,
		RunE:        func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[:1], args[1:]) },
	}
	flags.declare(cmd)
	return cmd
}

func newDiffCommand() *cobra.Command {
	flags := new(planFlags)
	cmd := &cobra.Command{
		Use:   "diff OLD NEW [flags] [-- OPERATOR-ARGUMENTS]",
		Short: "Show what a new version of an operator would do at its start that the old one does not",
		Long: `Diff brings a copy of a cluster, or samples, to rest with the old version of an operator, starts it again to learn what
every start does, and then starts the new one: what is left is what the upgrade does.
` + planEnd,
		Example: `  ctrlkit diff ./old/cmd ./cmd                              on a copy of the cluster of KUBECONFIG
  ctrlkit diff ./old/cmd ./cmd --from config/crd/bases -f config/samples   in CI, without a cluster
  ctrlkit diff bin/manager-v1 bin/manager-v2 --policy no-restart`,
		Annotations: map[string]string{ownCodes: "true"},
		Args: func(cmd *cobra.Command, args []string) error {
			if n := len(args); n < 2 || cmd.ArgsLenAtDash() >= 0 && cmd.ArgsLenAtDash() != 2 || cmd.ArgsLenAtDash() < 0 && n != 2 {
				return errors.New("expected two operators, OLD and NEW; put the arguments of the operators after --")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[:2], args[2:]) },
	}
	flags.declare(cmd)
	return cmd
}

func (f *planFlags) declare(cmd *cobra.Command) {
	set := cmd.Flags()
	clusterFlags(set, &f.kubeconfig)
	set.StringArrayVar(&f.from, "from", nil, "`FILE` or directory with the objects and definitions of the cluster, or a recording of ctrlkit record, instead of a cluster, repeatable")
	set.StringArrayVarP(&f.files, "filename", "f", nil, "`FILE` or directory with objects to apply, repeatable")
	set.StringArrayVar(&f.deletes, "delete", nil, "`KIND/NAME` of an object to delete, repeatable")
	set.StringVarP(&f.namespace, "namespace", "n", "default", "`NAMESPACE` of objects that have none")
	set.StringArrayVar(&f.policy, "policy", nil, "fail if the `RULE` is broken: no-restart, no-delete, or no-delete=KIND,KIND; repeatable")
	set.BoolVar(&f.webhooks, "webhooks", false, "ask the admission webhooks of the cluster about each write, as dry runs")
	f.declareRun(cmd)
	f.output = outputFlag(cmd, "text", "markdown", "json")
}

// declareRun declares the flags that are about how the operator runs.
func (f *planFlags) declareRun(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringArrayVar(&f.env, "env", nil, "`NAME=VALUE` for the operator's environment, repeatable")
	set.BoolVar(&f.outside, "outside", false, "let the operator reach what is outside the cluster: what it does there is not undone")
	set.BoolVar(&f.all, "all", false, "also show what other controllers would do, each object of a group, and each field of a status")
	set.BoolVar(&f.logs, "logs", false, "show the operator's log")
	set.DurationVar(&f.quiet, "quiet", 5*time.Second, "the operator is idle when nothing new has happened for this `DURATION`")
	set.DurationVar(&f.timeout, "timeout", 2*time.Minute, "what is not idle after this `DURATION` is incomplete")
}

func (f *planFlags) run(cmd *cobra.Command, operators, arguments []string) error {
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	programs := make([]trial.Program, len(operators))
	for i, name := range operators {
		if programs[i], err = f.program(cmd, name, arguments); err != nil {
			return asExit(err, false)
		}
	}
	o.Operator = programs[0]
	var result *plan.Plan
	if len(programs) == 1 {
		result, err = plan.For(cmd.Context(), *o)
	} else {
		result, err = plan.Compare(cmd.Context(), *o, programs[1])
	}
	if isTerminal(cmd.ErrOrStderr()) {
		fmt.Fprint(cmd.ErrOrStderr(), "\r\x1b[K")
	}
	if err != nil {
		return err
	}
	return f.print(cmd, result)
}

// print prints a plan, and returns its exit code.
func (f *planFlags) print(cmd *cobra.Command, result *plan.Plan) error {
	broken, err := result.Check(f.policy)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.output.value == "json" {
		err = writeJSON(out, result)
	} else {
		err = result.Write(out, plan.Style{
			Colors: isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Markdown: f.output.value == "markdown", All: f.all,
		})
	}
	switch {
	case err != nil:
		return fmt.Errorf("writing the plan: %w", err)
	case len(broken) > 0:
		return fmt.Errorf("the policy is broken:\n  %s", strings.Join(broken, "\n  "))
	case result.Incomplete():
		return &exitError{code: exitIncomplete}
	case !result.Nothing():
		return &exitError{code: exitChanges}
	}
	return nil
}

// options returns what the flags say.
func (f *planFlags) options(cmd *cobra.Command) (*plan.Options, error) {
	if _, err := (&plan.Plan{}).Check(f.policy); err != nil {
		return nil, err
	}
	o, err := f.base(cmd)
	if err != nil {
		return nil, err
	}
	if o.Change, err = readManifests(f.files); err != nil {
		return nil, err
	}
	return o, f.source(cmd.Context(), o)
}

// base returns what the flags say of how the operator runs.
func (f *planFlags) base(cmd *cobra.Command) (*plan.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	o := &plan.Options{
		Namespace: f.namespace, Supervisor: []string{self, supervisor.Name}, Quiet: f.quiet, Timeout: f.timeout, Outside: f.outside, Webhooks: f.webhooks,
		Progress: progressOf(cmd.ErrOrStderr()),
	}
	if f.logs {
		o.Log = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
	}
	return o, nil
}

// source sets the cluster that is copied, and what is deleted there.
func (f *planFlags) source(ctx context.Context, o *plan.Options) error {
	if len(f.from) > 0 {
		return f.sourceOfFiles(o)
	}
	target, err := f.kubeconfig.Load()
	if err != nil {
		return fmt.Errorf("%w; or read files with --from", err)
	}
	config := target.Config
	if err := reach(ctx, config); err != nil {
		return err
	}
	if o.Source, err = plan.NewCluster(config); err != nil || len(f.deletes) == 0 {
		return err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("asking the cluster for its kinds: %w", err)
	}
	cached := memory.NewMemCacheClient(disco)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	return f.eachDeletion(o, func(kind string) (schema.GroupVersionResource, bool, error) {
		gvk, err := mapper.KindFor(schema.ParseGroupResource(strings.ToLower(kind)).WithVersion(""))
		if err != nil {
			return schema.GroupVersionResource{}, false, err
		}
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return schema.GroupVersionResource{}, false, err
		}
		return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	})
}

func (f *planFlags) sourceOfFiles(o *plan.Options) error {
	manifests, unread, err := readCluster(f.from, time.Now())
	if err != nil {
		return err
	}
	file, err := newFile(manifests)
	if err != nil {
		return err
	}
	file.Lacks(unread)
	o.Source = file
	return f.eachDeletion(o, file.ResourceNamed)
}

// readCluster reads the objects of files and directories, those of recordings as if these were made
// now. It also returns what recordings lack.
func readCluster(paths []string, now time.Time) (objects []run.Manifest, unread []string, err error) {
	for _, path := range paths {
		if !recording.Is(path) {
			read, err := readManifests([]string{path})
			if err != nil {
				return nil, nil, err
			}
			objects = append(objects, read...)
			continue
		}
		recorded, err := recording.Read(path)
		if err != nil {
			return nil, nil, err
		}
		recorded.At(now.UTC().Truncate(time.Second))
		unread = append(unread, recorded.Unread...)
		for i, obj := range recorded.Objects {
			objects = append(objects, run.Manifest{File: path, Number: i + 2 + len(recorded.Reports), Object: obj})
		}
	}
	return objects, unread, nil
}

// eachDeletion reads --delete. find returns the resource of a kind, and whether it is namespaced.
func (f *planFlags) eachDeletion(o *plan.Options, find func(kind string) (schema.GroupVersionResource, bool, error)) error {
	for _, text := range f.deletes {
		kind, name, ok := strings.Cut(text, "/")
		if !ok || name == "" {
			return fmt.Errorf("--delete %s: must be KIND/NAME", text)
		}
		resource, namespaced, err := find(kind)
		if err != nil {
			return fmt.Errorf("--delete %s: %w", text, err)
		}
		obj := plan.Object{Resource: resource, Name: name}
		if namespaced {
			obj.Namespace = f.namespace
		}
		o.Delete = append(o.Delete, obj)
	}
	return nil
}

// readManifests reads all objects of files and directories.
func readManifests(paths []string) ([]run.Manifest, error) {
	var manifests []run.Manifest
	for _, path := range paths {
		files, err := run.ManifestFiles(path)
		if err != nil {
			return nil, err
		}
		before := len(manifests)
		for _, file := range files {
			read, err := run.ReadManifests(file)
			if err != nil {
				return nil, err
			}
			manifests = append(manifests, read...)
		}
		if len(manifests) == before {
			return nil, fmt.Errorf("%s has no objects: name a file, or the directory with the files, such as config/crd/bases", path)
		}
	}
	return manifests, nil
}

// program returns the operator of a name: a Go package that is built, or a program.
func (f *planFlags) program(cmd *cobra.Command, name string, arguments []string) (trial.Program, error) {
	for _, variable := range f.env {
		if !strings.Contains(variable, "=") {
			return trial.Program{}, fmt.Errorf("--env %s: must be NAME=VALUE", variable)
		}
	}
	p := trial.Program{Environment: f.env}
	info, err := os.Stat(name)
	if path, errOfPath := exec.LookPath(name); errOfPath == nil && (err != nil || !info.IsDir()) {
		p.Argv = append([]string{path}, arguments...)
		return p, nil
	}
	project, err := run.FindProject(cmd.Context(), name)
	if err != nil {
		return p, err
	}
	path, err := project.Build(cmd.Context(), unchanged(cmd.ErrOrStderr()), cmd.ErrOrStderr())
	if err != nil {
		return p, err
	}
	p.Argv = append([]string{path}, slices.Clone(arguments)...)
	return p, nil
}

// progressOf returns a function that shows what is being done: redrawn in place in a terminal, and
// a line at most every ten seconds in a pipe.
func progressOf(w io.Writer) func(string) {
	terminal, last := isTerminal(w), time.Now()
	return func(text string) {
		switch {
		case terminal:
			fmt.Fprintf(w, "\r\x1b[K%.100s", text)
		case time.Since(last) >= 10*time.Second:
			last = time.Now()
			fmt.Fprintln(w, text)
		}
	}
}
