// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// options are the flags of the command.
type options struct {
	examples []example
	objects  int
	chaos    time.Duration
	quiet    time.Duration
	every    time.Duration // the interval of CronJobs
	kills    span
	edits    span
	replicas int
	actions  counts
	times    int
	seed     uint64
	logs     string
}

// A span is a range of durations, from which one is chosen.
type span struct{ least, most time.Duration }

func (s span) String() string { return s.least.String() + "," + s.most.String() }

// Set makes a span a flag.Value.
func (s *span) Set(text string) error {
	least, most, two := strings.Cut(text, ",")
	if !two {
		return errors.New("want two durations, such as 8s,21s")
	}
	var err error
	if s.least, err = time.ParseDuration(least); err != nil {
		return err
	}
	if s.most, err = time.ParseDuration(most); err != nil {
		return err
	}
	if s.least <= 0 || s.most < s.least {
		return errors.New("want the shorter duration first, and both above zero")
	}
	return nil
}

const usage = `Soak runs the operators of the examples in a real control plane. First it kills them with SIGKILL at random times
while schedules come due and objects are edited (the chaos). Then it stops killing and editing (the quiet phase), and
checks the objects in the API server.

Usage: soak [flags]

  soak                                                      all examples: 50 objects, 10 minutes of chaos, 10 quiet minutes each
  soak -example 01_cronjob -objects 20 -chaos 2m -quiet 2m  one example, shorter
  soak -example 02_simple,03_rwexternal -seed 7             the same kills and edits as in every run with this seed
  soak -example 05_user -replicas 2 -actions stop=10        stop the leader ten times until another one has its Lease, and resume it
  soak -example 05_user -times 10                           ten soaks, of ten seeds
  soak -logs /tmp/soak                                      keep the logs of the operators and the control plane

With replicas, one is the leader. Instead of kills at random times there are actions, in a random order:

%s

Exit codes: 0 all checks hold, 1 a check does not hold or the soak was interrupted, 2 wrong usage.

`

// parseOptions reads the command line. It writes the help, if that is asked for, and returns
// flag.ErrHelp then.
func parseOptions(args []string, out io.Writer) (*options, error) {
	o := &options{actions: slices.Clone(defaultCounts), kills: span{8 * time.Second, 21 * time.Second}, edits: span{100 * time.Millisecond, 400 * time.Millisecond}}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // mistakes are printed once, by the caller
	names := flags.String("example", "all", "the `names` of examples, with commas between them, or all")
	flags.IntVar(&o.objects, "objects", 50, "the `number` of CronJobs, Simples, RWExternals, Users or Streams")
	flags.DurationVar(&o.chaos, "chaos", 10*time.Minute, "the `duration` of kills and edits")
	flags.DurationVar(&o.quiet, "quiet", 10*time.Minute, "the `duration` without kills and edits afterwards")
	flags.DurationVar(&o.every, "every", 20*time.Second, "the `interval` of the CronJobs' schedules, whole seconds")
	flags.Var(&o.kills, "kill-every", "the shortest and the longest `pause` between kills")
	flags.Var(&o.edits, "edit-every", "the shortest and the longest `pause` between edits, all objects together")
	flags.IntVar(&o.replicas, "replicas", 1, "the `number` of processes of the operator, of which one is the leader: 1 or 2")
	flags.Var(&o.actions, "actions", "how often each `action` is done to replicas")
	flags.IntVar(&o.times, "times", 1, "the `number` of soaks of each example; each has the seed after that of the one before")
	flags.Uint64Var(&o.seed, "seed", 0, "the `number` that kills and edits are computed from; 0 chooses one")
	flags.StringVar(&o.logs, "logs", "", "keep the logs of operators and control planes below this `directory`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(out, usage, explainActions())
			fmt.Fprint(out, "Flags:\n")
			flags.SetOutput(out)
			flags.PrintDefaults()
		}
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: use flags", flags.Arg(0))
	}
	if err := o.selectExamples(*names); err != nil {
		return nil, err
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	return o, o.validate()
}

func explainActions() string {
	text := ""
	for _, a := range actions {
		text += fmt.Sprintf("  %-7s %s\n", a.name, a.what)
	}
	return text
}

func (o *options) selectExamples(names string) error {
	if names == "all" {
		o.examples = examples
		return nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(examples, func(e example) bool { return e.name == name })
		if i < 0 {
			var known []string
			for _, e := range examples {
				known = append(known, e.name)
			}
			return fmt.Errorf("unknown example %q: want all, or some of %s", name, strings.Join(known, ","))
		}
		o.examples = append(o.examples, examples[i])
	}
	return nil
}

func (o *options) validate() error {
	switch {
	case o.objects < 1 || o.objects > 1000:
		return fmt.Errorf("-objects %d: want 1 to 1000", o.objects)
	case o.replicas < 1 || o.replicas > 2:
		return fmt.Errorf("-replicas %d: want 1 or 2", o.replicas)
	case o.replicas > 1 && !seesProcesses:
		return errors.New("-replicas 2: it needs Linux, whose /proc shows which process calls a system")
	case o.replicas > 1 && slices.ContainsFunc(o.examples, func(e example) bool { return e.scheduled }):
		return fmt.Errorf("-replicas 2: a run of a schedule may start %s late, and a Lease lasts as long: select other examples than 01_cronjob with -example", runGrace)
	case o.times < 1:
		return fmt.Errorf("-times %d: want at least 1", o.times)
	case o.chaos < 0 || o.quiet < 0:
		return errors.New("-chaos and -quiet must not be negative")
	case o.every < 5*time.Second || o.every%time.Second != 0:
		return fmt.Errorf("-every %s: want whole seconds, at least 5s, because an operator needs some seconds to restart", o.every)
	}
	if o.logs != "" {
		if info, err := os.Stat(o.logs); err != nil || !info.IsDir() {
			return fmt.Errorf("-logs %s: want an existing directory", o.logs)
		}
	}
	return nil
}

// describe describes the soak of an example.
func (o *options) describe(e example) string {
	what := ""
	if e.scheduled {
		what = fmt.Sprintf(", @every %s", o.every)
	}
	if o.replicas > 1 {
		what += fmt.Sprintf(", %d replicas, %s", o.replicas, o.actions.String())
	}
	return fmt.Sprintf("%d objects%s; %s of chaos, %s quiet; seed %d", o.objects, what, o.chaos, o.quiet, o.seed)
}

// command returns the command line that does the same to one example.
func (o *options) command(e example) string {
	return fmt.Sprintf("go run ./examples/internal/soak -example %s -objects %d -chaos %s -quiet %s -every %s -kill-every %s -edit-every %s -replicas %d -actions %s -seed %d",
		e.name, o.objects, o.chaos, o.quiet, o.every, o.kills, o.edits, o.replicas, o.actions.String(), o.seed)
}
