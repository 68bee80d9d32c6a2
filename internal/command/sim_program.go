// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/program"
	simreport "github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// simProgram are the flags of ctrlkit sim --program.
type simProgram struct {
	planFlags // of which the operator and the files are used
	script    string
	settle    time.Duration
	parallel  int
	name      string
	pairs     int

	transitions string // an expression; empty to run faults
	byDesign    string // an expression; empty if nothing is
}

func (f *simProgram) declare(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.name, "program", "", "simulate this `OPERATOR`, a Go package or a program in any language, as a process; its arguments follow --")
	set.StringArrayVarP(&f.files, "filename", "f", nil, "with --program: `FILE` or directory with definitions and samples, repeatable")
	set.StringVar(&f.script, "script", "", "with --program: `FILE` with the steps of a user, instead of applying the samples and deleting them")
	set.StringVar(&f.transitions, "transitions", "", "with --program: change each property of the samples instead of running faults; with --transitions=`EXPRESSION` those it matches")
	set.Lookup("transitions").NoOptDefVal = "."
	set.IntVar(&f.pairs, "pairs", 0, "with --program: after the plans with one fault, run `N` plans with two")
	set.StringVar(&f.byDesign, "by-design", "", "with --program: what is found is meant where this `EXPRESSION` matches \"ORACLE: PLAN\"")
	set.StringVarP(&f.namespace, "namespace", "n", "default", "with --program: `NAMESPACE` of objects that have none")
	set.StringArrayVar(&f.env, "env", nil, "with --program: `NAME=VALUE` for the operator's environment, repeatable")
	set.DurationVar(&f.quiet, "quiet", 2*time.Second, "with --program: the operator is idle when nothing new has happened for this `DURATION`")
	set.DurationVar(&f.settle, "settle", 30*time.Second, "with --program: how long the operator may take to recover, a `DURATION`")
	set.IntVar(&f.parallel, "parallel", 0, "with --program: `RUNS` at the same time, which wait most of their time (default: as many as the processors allow)")
	set.BoolVar(&f.outside, "outside", false, "with --program: let the operator reach what is outside the cluster, one run at a time")
}

// run simulates a program.
func (f *simProgram) run(cmd *cobra.Command, arguments []string, o simOptions) error {
	options, err := f.options(cmd, o)
	if err != nil {
		return err
	}
	if options.Program, err = f.program(cmd, f.name, arguments); err != nil {
		return asExit(err, false)
	}
	options.Again = func(p fault.Plan) string { return f.again(cmd.Flags(), arguments, p) }
	terminal := isTerminal(cmd.ErrOrStderr())
	clear := func() {
		if terminal {
			fmt.Fprint(cmd.ErrOrStderr(), "\r\x1b[K")
		}
	}
	options.Found = func(with fault.Plan, v oracle.Violation) {
		clear()
		text, _, _ := strings.Cut(v.Text, "\n")
		fmt.Fprintf(cmd.ErrOrStderr(), "found: %s: %s, with: %s\n", v.Oracle, text, with)
	}
	simulation, err := program.Explore(cmd.Context(), *options)
	clear()
	if err != nil {
		return err
	}
	simulation.Package, simulation.Test, simulation.Number = f.name, strings.Join(append([]string{f.name}, arguments...), " "), 1
	document := &simreport.Document{Simulations: []simreport.Simulation{*simulation}}
	if err := f.print(cmd, document, o); err != nil {
		return err
	}
	if cmd.Context().Err() != nil {
		return &exitError{code: exitInterrupted}
	}
	if o.plan != "" && o.output.value != "json" && len(simulation.Findings) == 0 { // a finding has its own
		fmt.Fprintf(cmd.OutOrStdout(), "what happened:\n  %s\n", strings.Join(simulation.With, "\n  "))
	}
	if document.Bad() || simulation.Stopped != "" && !strings.HasPrefix(simulation.Stopped, simreport.Budget) || simulation.TooFew() {
		return &exitError{code: exitFound}
	}
	return nil
}

// options returns what the flags say, but for the operator.
func (f *simProgram) options(cmd *cobra.Command, o simOptions) (*program.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	options := &program.Options{
		Namespace: f.namespace, Supervisor: []string{self, supervisor.Name}, Quiet: f.quiet, Settle: f.settle,
		Parallel: f.parallel, Outside: f.outside, Progress: progressOf(cmd.ErrOrStderr()),
	}
	var said sync.Map
	options.Visible = func(directory string) {
		if _, known := said.LoadOrStore(directory, true); !known {
			fmt.Fprintf(cmd.ErrOrStderr(), "the operator sees the files and sockets of this machine in %s\n", directory)
		}
	}
	if f.outside {
		options.Parallel = 1 // they would use the same ports
	} else if err := supervisor.CanIsolate(); err != nil {
		return nil, fmt.Errorf("the operator can't be kept from reaching what is outside the cluster: %w; --outside lets it", err)
	}
	if err := f.pick(options, o); err != nil {
		return nil, usageError(err)
	}
	if len(f.files) == 0 {
		return nil, usageError(errors.New("--program needs -f with the definitions and the samples, such as -f config/crd/bases -f config/samples"))
	}
	manifests, err := readManifests(f.files)
	if err != nil {
		return nil, err
	}
	var samples []run.Manifest
	for _, m := range manifests {
		if m.Object.GetKind() != "CustomResourceDefinition" {
			samples = append(samples, m)
			continue
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(m.Object.Object, d); err != nil {
			return nil, fmt.Errorf("the definition of %s: %w", m.Where(), err)
		}
		options.Definitions = append(options.Definitions, d)
	}
	if f.script != "" {
		options.Script, err = program.ReadScript(f.script, f.namespace)
		return options, err
	}
	if len(samples) == 0 {
		return nil, usageError(fmt.Errorf("%s has definitions only: name the samples, too, with -f or --script", strings.Join(f.files, ", ")))
	}
	options.Samples = samples
	options.Script = program.ScriptOf(samples, options.Definitions)
	return options, nil
}

// pick sets what is to be run, and what of it is by design.
func (f *simProgram) pick(options *program.Options, o simOptions) error {
	if o.plan != "" {
		parsed, err := fault.ParsePlan(o.plan)
		if err != nil {
			return err
		}
		options.Plan = &parsed
	}
	if f.pairs < 0 || f.pairs > 0 && (f.transitions != "" || o.plan != "" || o.swarm) {
		return errors.New("--pairs N adds plans to those with one fault: it can't be below zero, or be used with --transitions, --swarm and --plan")
	}
	if o.swarm && (f.transitions != "" || o.plan != "") {
		return errors.New("--swarm draws plans of faults: it can't be used with --transitions and --plan")
	}
	o.budget = cmp.Or(o.budget, "10m")
	choice, err := o.choice()
	if err != nil {
		return err
	}
	options.Choice, options.Pairs = choice, f.pairs
	if f.transitions != "" && (f.script != "" || o.plan != "") {
		return errors.New("--transitions changes the samples: it can't be used with --script and --plan")
	}
	for _, flag := range []struct {
		name, text string
		to         **regexp.Regexp
	}{{"--transitions", f.transitions, &options.Transitions}, {"--by-design", f.byDesign, &options.ByDesign}} {
		if flag.text == "" {
			continue
		}
		expression, err := regexp.Compile(flag.text)
		if err != nil {
			return fmt.Errorf("%s: %w", flag.name, err)
		}
		*flag.to = expression
	}
	return nil
}

// again returns the command line that runs a plan again.
func (f *simProgram) again(flags *pflag.FlagSet, arguments []string, p fault.Plan) string {
	words := []string{"ctrlkit", "sim", "--program", quoteForShell("sh", f.name)}
	for _, file := range f.files {
		words = append(words, "-f", quoteForShell("sh", file))
	}
	if f.script != "" {
		words = append(words, "--script", quoteForShell("sh", f.script))
	}
	if p.Transition != "" {
		words = append(words, "--transitions="+quoteForShell("sh", "^"+regexp.QuoteMeta(p.Transition)+"$"))
	} else {
		words = append(words, "--plan", quoteForShell("sh", p.String()))
	}
	for _, name := range []string{"env", "namespace", "outside", "quiet", "settle"} {
		if !flags.Changed(name) {
			continue
		}
		values := []string{flags.Lookup(name).Value.String()}
		if name == "env" {
			values = f.env
		}
		for _, value := range values {
			words = append(words, quoteForShell("sh", "--"+name+"="+value))
		}
	}
	if len(arguments) > 0 {
		words = append(words, "--")
	}
	for _, a := range arguments {
		words = append(words, quoteForShell("sh", a))
	}
	return strings.Join(words, " ")
}

// print writes the report, and with a plan what happened.
func (f *simProgram) print(cmd *cobra.Command, d *simreport.Document, o simOptions) error {
	if err := writeReports(d, o.json, o.html); err != nil {
		return problemError(err)
	}
	out := cmd.OutOrStdout()
	var err error
	if o.output.value == "json" {
		err = d.Write(out)
	} else {
		err = d.Text(out, simreport.Style{Color: isTerminal(out) && os.Getenv("NO_COLOR") == "", Full: simreport.DefaultFull})
	}
	if err != nil {
		return problemError(err)
	}
	return nil
}
