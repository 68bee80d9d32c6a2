// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/cluster/private"
	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	simreport "github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// simOptions are the flags of ctrlkit sim.
type simOptions struct {
	run, plan, shard string
	budget           string
	output           *choice
	json, html       string
	timeout          time.Duration
	verbose          bool
	swarm            bool
	seed             uint64 // of the swarm, or of the pairs of a program
}

// newSimCommand returns the command that runs the simulations of packages.
func newSimCommand() *cobra.Command {
	var o simOptions
	var p simProgram
	cmd := &cobra.Command{
		Use:   "sim [flags] [PACKAGE...]",
		Short: "Run the simulations of an operator, with faults at each of its writes and reads",
		Long: `Sim runs the tests of packages that call sim.Run. It shows their progress and each
finding as soon as a plan shows it, the reports of the tests, and a table of the simulations.

An interrupt (Ctrl-C) ends the simulations early: what they have found until then is reported. The
same happens shortly before the time limit.

With --program, sim needs no test and no Go: it runs any operator as a process that takes its cluster
from KUBECONFIG, in real time, applies the samples and deletes them, and crashes, refuses and loses
what the operator writes. With --transitions it changes what the samples say instead, as the schema
allows, and compares with objects that were created like that.

With --swarm, sim runs plans of many faults instead of all others, drawn from --seed, for as long as
--budget says: for nights, and for bugs that need three faults or more. What a finding shows has the
fewest faults that are enough.

The same tests run with go test, which has the flags -sim.plan, -sim.shard, -sim.budget, -sim.swarm, -sim.seed,
-sim.json and -sim.html.

Exit codes: 0 no findings, 1 findings or plans that were not run, 2 wrong usage, 130 interrupted.`,
		Example: `  ctrlkit sim ./...                                       the simulations of all packages
  ctrlkit sim ./internal/controller --run TestBackup      one of them
  ctrlkit sim ./internal/controller --run TestBackup --plan 'crash after write 3'   one plan, with its trace
  ctrlkit sim ./... --html report.html                    with a page to read and to attach to a CI job
  ctrlkit sim ./... --budget quick                        each kind of fault at four places
  ctrlkit sim ./... --swarm --budget 1h --seed 7          three to eight faults at once, for an hour
  ctrlkit sim ./... --shard 2/4 -o json >shard-2.json     a quarter of the plans, on the second of four machines
  ctrlkit sim report shard-*.json --html report.html      what all machines have found
  ctrlkit sim --program ./cmd -f config/crd/bases -f config/samples        an operator without a test
  ctrlkit sim --program ./cmd -f config/crd/bases -f config/samples --transitions   what users change, by mistake, too
  ctrlkit sim --program ./cmd -f config/crd/bases -f config/samples --pairs 200   two faults, too
  ctrlkit sim --program ./cmd -f config/crd/bases -f config/samples --swarm --budget 1h   three to eight faults at once
  ctrlkit sim --program python3 -f crds/ -f samples/ -- operator.py        one in another language`,
		Args: packagePatterns,
		RunE: func(cmd *cobra.Command, packages []string) error {
			if p.name != "" {
				return p.run(cmd, packages, o)
			}
			if o.swarm && !cmd.Flags().Changed("timeout") {
				o.timeout = 0 // each simulation ends with its budget
			}
			if err := o.check(); err != nil {
				return usageError(err)
			}
			if len(packages) == 0 {
				packages = []string{"."}
			}
			return runSimulations(cmd, packages, o)
		},
	}
	o.declare(cmd)
	p.declare(cmd)
	cmd.AddCommand(newSimReportCommand())
	return cmd
}

// declare declares the flags.
func (o *simOptions) declare(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.run, "run", "", "run only the tests whose names match this regular `expression`")
	cmd.Flags().StringVar(&o.plan, "plan", "", "run only this `plan`, and print its trace")
	cmd.Flags().StringVar(&o.shard, "shard", "", "run only a part of the plans: the `i/n`-th, such as 2/4")
	o.output = outputFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&o.json, "json", "", "")
	_ = cmd.Flags().MarkHidden("json")
	cmd.Flags().StringVar(&o.budget, "budget", "", "run the plans of a `budget`: smoke (each kind of fault once), quick (at four places), full, or a time such as 10m (the default with --program, a plan more at most)")
	cmd.Flags().BoolVar(&o.swarm, "swarm", false, "run plans of three to eight faults instead of all others, until the time of the --budget (10m) of each simulation is over")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "the `NUMBER` that draws the --swarm, and with --program chooses the --pairs")
	cmd.Flags().StringVar(&o.html, "html", "", "write what was found to this `file`, as a page of HTML")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print the output of go test -v")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Minute, "end each package's simulations, with their report, before this `time` is over; with --swarm there is no limit unless this is set")
}

// check returns an error if the flags of tests can't be meant like that.
func (o simOptions) check() error {
	switch {
	case o.plan != "" && o.run == "":
		return errors.New("--plan needs --run: a plan belongs to one test")
	case o.swarm && o.plan != "":
		return errors.New("--swarm draws plans: it can't be used with --plan")
	}
	_, err := o.choice()
	return err
}

// choice returns which plans the flags choose.
func (o simOptions) choice() (c explore.Choice, err error) {
	c.Seed, c.Only, c.Endless = o.seed, o.swarm, o.swarm
	if c.Budget, err = explore.ParseBudget(o.budget); err != nil {
		return c, fmt.Errorf("--budget: %w", err)
	}
	if c.Shard, err = explore.ParseShard(o.shard); err != nil {
		return c, fmt.Errorf("--shard: %w", err)
	}
	if o.swarm && o.budget != "" && c.Budget.Time == 0 {
		return c, fmt.Errorf("--budget %s: a swarm has no end, so --swarm wants a time such as 10m", o.budget)
	}
	return c, nil
}

// variables returns the environment variables of the tests that say which plans are run.
func (o simOptions) variables() []string {
	swarm, budget := "", o.budget
	if o.swarm {
		swarm, budget = strconv.FormatUint(o.seed, 10), cmp.Or(o.budget, "10m")
	}
	return []string{shardVariable + "=" + o.shard, budgetVariable + "=" + budget, swarmVariable + "=" + swarm}
}

// The environment variables of package sim. Importing it would slow down the start of all commands.
const (
	progressVariable = "CTRLKIT_SIM_PROGRESS"
	jsonVariable     = "CTRLKIT_SIM_JSON"
	shardVariable    = "CTRLKIT_SIM_SHARD"
	budgetVariable   = "CTRLKIT_SIM_BUDGET"
	swarmVariable    = "CTRLKIT_SIM_SWARM"
)

func runSimulations(cmd *cobra.Command, packages []string, o simOptions) error {
	dir, err := os.MkdirTemp("", "ctrlkit-sim-")
	if err != nil {
		return fmt.Errorf("creating a directory for the reports: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the temporary directory
	text := cmd.OutOrStdout()
	if o.output.value == "json" {
		text = cmd.ErrOrStderr() // for people
	}
	ended, testErr, err := o.test(cmd, packages, dir, text, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.plan == "" {
		table(text, ended, testErr != nil)
	}
	if err := o.write(dir, cmd.OutOrStdout()); err != nil {
		return problemError(err)
	}
	var exit *exec.ExitError
	switch {
	case cmd.Context().Err() != nil:
		return context.Cause(cmd.Context())
	case errors.As(testErr, &exit):
		return &exitError{code: exitFound}
	case testErr != nil:
		return fmt.Errorf("running go test: %w", testErr)
	}
	return nil
}

// test runs go test with more environment variables, and shows the progress. The simulations write
// their reports into dir. It returns how far they came, and how go test ended.
func (o simOptions) test(cmd *cobra.Command, packages []string, dir string, out, problems io.Writer, settings ...string) (shown []progress, testErr, err error) {
	file := filepath.Join(dir, "progress")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, nil, fmt.Errorf("creating a file for the progress: %w", err)
	}
	test := exec.CommandContext(cmd.Context(), "go", o.arguments(packages)...)
	test.Env = slices.Concat(os.Environ(), []string{progressVariable + "=" + file, jsonVariable + "=" + filepath.Join(dir, "reports") + "/"}, o.variables(), settings)
	test.Stdout, test.Stderr = out, problems
	interruptGroup(test)
	ctx, cancel := context.WithCancel(context.WithoutCancel(cmd.Context()))
	ended := make(chan []progress)
	go func() { ended <- showProgress(ctx, newProgressWriter(cmd.ErrOrStderr()), file) }()
	testErr = test.Run()
	cancel()
	return <-ended, testErr, nil
}

// arguments returns those of the go command.
func (o simOptions) arguments(packages []string) []string {
	args := []string{"test", "-count=1", "-timeout=" + o.timeout.String()}
	if o.verbose || o.plan != "" {
		args = append(args, "-v")
	}
	args = append(args, packages...)
	if o.run != "" {
		args = append(args, "-run="+o.run)
	}
	if o.plan != "" {
		args = append(args, "-args", "-sim.plan="+o.plan)
	}
	return args
}

// write merges the reports of the packages into the files that the flags name, and to out as JSON.
func (o simOptions) write(dir string, out io.Writer) error {
	if o.json == "" && o.html == "" && o.output.value != "json" {
		return nil
	}
	d, err := readReports(dir)
	if err == nil && o.output.value == "json" {
		err = d.Write(out)
	}
	if err != nil {
		return err
	}
	return writeReports(d, o.json, o.html)
}

// readReports reads the reports of all packages as one.
func readReports(dir string) (*simreport.Document, error) {
	files, err := filepath.Glob(filepath.Join(dir, "reports", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the reports of the simulations: %w", err)
	}
	slices.Sort(files)
	return mergeReports(files)
}

// mergeReports reads reports as one.
func mergeReports(files []string) (*simreport.Document, error) {
	var documents []*simreport.Document
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		d, err := simreport.Read(f)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		documents = append(documents, d)
	}
	return simreport.Merge(documents...)
}

// writeReports writes a report to the files that have a name.
func writeReports(d *simreport.Document, jsonFile, htmlFile string) error {
	for name, write := range map[string]func(io.Writer) error{jsonFile: d.Write, htmlFile: d.HTML} {
		if name == "" {
			continue
		}
		var b bytes.Buffer
		err := write(&b)
		if err == nil {
			err = private.Write(name, b.Bytes())
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
