// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command measure measures operators that all do the same, on a real control plane, and prints one
// table. It is what "make bench" runs:
//
//	go run ./measure -help
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/bench/table"
)

const usage = `Measure operators that all do the same, on a real control plane (etcd and
kube-apiserver), and print one table as Markdown. Each operator runs as a
process of its own, one at a time, in turns. With the defaults it takes some
fifteen minutes on two cores. The machine should do nothing else.

Run it in the directory bench, because it builds the operators first.

Examples:
  # the whole table, as a file, and all samples as JSON
  go run ./measure -json bench.json > bench.md

  # the same by make
  make bench BENCH="-json $PWD/bench.json"

  # does every operator converge? The figures mean little.
  go run ./measure -quick

  # where the CPU time goes: see them with "go tool pprof -top FILE"
  go run ./measure -operators ctrlkit -rounds 1 -profiles /tmp

  # two operators, with heap and resyncs at 5,000 objects
  go run ./measure -operators ctrlkit,careful -objects 5000

  # an operator that is not in the repository, as one more column
  go run ./measure -operators ctrlkit,careful -rival /tmp/theirs

  # operators of external resources, whose system takes 50 ms for a call; seven
  # minutes for each operator in three rounds
  go run ./measure -outside -rival /tmp/theirs -rounds 3 -burst 100

  # shared controllers beside rancher's: 500 owners of three children at once,
  # 100 deleted children, 10,000 cached objects with 1 and with 20 handlers
  go run ./measure -operators handlers,wrangler -reference wrangler -rounds 3 -burst 500 -repairs 100

Flags:
`

// sizes are how much is measured.
type sizes struct {
	rounds  int
	objects int // for heap and resyncs
	burst   int // objects that are created at once
	serial  int // objects that are created one after the other, for latencies
	repairs int // children that are deleted one after the other, for latencies
	cached  int // ConfigMaps in the cache of a process whose handlers do nothing

	outside  bool          // measures operators of external resources
	latency  time.Duration // of a call of the external system
	interval time.Duration // of polls
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	result, err := measure(ctx, c, stderr)
	if err != nil {
		return err
	}
	if c.json != "" {
		if err := writeFile(c.json, result.WriteJSON); err != nil {
			return err
		}
	}
	return result.WriteMarkdown(stdout)
}

// A command is what the command line asks for.
type command struct {
	sizes     sizes
	rivals    []rival
	reference string // name of a rival
	json      string // file
	// profiles is the directory for CPU profiles.
	profiles string
}

func parse(args []string, stderr io.Writer) (command, error) {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var c command
	s := &c.sizes
	s.serial = 20
	flags.IntVar(&s.rounds, "rounds", 5, "how often each operator is measured, in turns")
	flags.IntVar(&s.objects, "objects", 1000, "how many objects there are for heap and resyncs")
	flags.IntVar(&s.burst, "burst", 200, "how many objects are created at once")
	flags.IntVar(&s.repairs, "repairs", 20, "how many children are deleted, one after the other, in each round; the p99 of less than 100 is the slowest")
	flags.IntVar(&s.cached, "cached", 10_000, "how many ConfigMaps are cached for the heap with 1 and with 20 handlers")
	names := flags.String("operators", "", "operators to measure, separated by commas (default all but the last): "+namesOf(rivals.all))
	flags.BoolVar(&s.outside, "outside", false, "measure operators of external resources instead of those of children")
	flags.DurationVar(&s.latency, "latency", 50*time.Millisecond, "with -outside, the time that each call of the external system takes")
	flags.DurationVar(&s.interval, "poll", 20*time.Second, "with -outside, the interval of polls")
	theirs := flags.String("rival", "", "`directory` with the source of one more operator; package process has what it has to answer")
	flags.StringVar(&c.reference, "reference", "", "operator that the others are compared with (default "+rivals.reference+", with -outside "+outsideRivals.reference+")")
	quick := flags.Bool("quick", false, "one round with few objects, to see that every operator converges")
	flags.StringVar(&c.json, "json", "", "`file` for all samples, as JSON")
	flags.StringVar(&c.profiles, "profiles", "", "existing `directory` for profiles of the operators, which falsifies their times")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if *quick {
		s.shrink(flags)
	}
	if flags.NArg() > 0 || s.latency <= 0 || s.interval < time.Second || min(s.rounds, s.burst, s.objects, s.repairs, s.cached) < 1 {
		return c, errors.New("there are no arguments but flags, and -rounds, -burst, -objects, -repairs and -cached are at least 1, -latency is positive, and -poll is a second at least; see -help")
	}
	of := rivals
	if s.outside {
		of = outsideRivals
	}
	c.reference = cmp.Or(c.reference, of.reference)
	if all, err := of.named(c.reference); err != nil || len(all) != 1 {
		return c, fmt.Errorf("-reference %q names no operator: there are %s", c.reference, namesOf(of.all))
	}
	var err error
	if c.rivals, err = of.named(*names); err != nil || *theirs == "" {
		return c, err
	}
	r, err := of.foreign(*theirs)
	c.rivals = append(c.rivals, r)
	return c, err
}

// shrink makes s small, but for what the command line sets.
func (s *sizes) shrink(flags *flag.FlagSet) {
	set := make(map[string]bool)
	flags.Visit(func(f *flag.Flag) { set[f.Name] = true })
	s.serial = 5
	for name, small := range map[string]struct {
		size  *int
		value int
	}{"rounds": {&s.rounds, 1}, "objects": {&s.objects, 100}, "burst": {&s.burst, 40}, "repairs": {&s.repairs, 1}, "cached": {&s.cached, 500}} {
		if !set[name] {
			*small.size = small.value
		}
	}
}

// measure builds the operators, starts the control plane and fills a table.
func measure(ctx context.Context, wanted command, progress io.Writer) (*table.Table, error) {
	selected, s := wanted.rivals, wanted.sizes
	load := loadAverage() // before there is any of our own
	c, err := newCluster(ctx, selected, progress)
	if err != nil {
		return nil, err
	}
	result := &table.Table{Reference: wanted.reference, Rows: s.rows()}
	for _, r := range selected {
		result.Operators = append(result.Operators, table.Operator{Name: r.name, Setting: r.setting})
	}
	b := &bench{cluster: c, sizes: s, table: result, progress: progress, profiles: wanted.profiles, base: make(map[string][]float64), many: make(map[string]*population)}
	begin := time.Now()
	if result.About, err = c.about(ctx, wanted, load); err == nil {
		err = b.run(ctx, selected)
	}
	fmt.Fprintf(progress, "measured for %s\n", time.Since(begin).Round(time.Second))
	return result, errors.Join(err, c.stop())
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
