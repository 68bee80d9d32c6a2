// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command outside measures an operator of package external whose external system takes a time for
// each call, on a real control plane: objects per second beside what the workers allow, and how
// polls are distributed over time.
//
//	go run ./outside -help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

const usage = `Measure an operator of package external, on a real control plane (etcd and
kube-apiserver). Its external system is in memory, and takes a time for each
call. With the defaults it takes some three minutes. The machine should do
nothing else.

Run it in the directory bench.

Examples:
  go run ./outside
  go run ./outside -objects 5000 -workers 50

Flags:
`

// sizes are how much is measured.
type sizes struct {
	objects, workers int
	latency, poll    time.Duration
	periods          int
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	load := loadAverage()
	fmt.Fprintln(stderr, "starting the control plane")
	plane, err := controlplane.Start(ctx, controlplane.Options{CRDs: []string{filepath.Join("widget", "crd.yaml")}, Progress: stderr})
	if err != nil {
		return err
	}
	m := &measurement{sizes: s, config: plane.Config(), progress: stderr}
	err = m.run(ctx)
	if err == nil {
		fmt.Fprintf(stdout, "%s, %d cores, load before %s\n\n", runtime.Version(), runtime.NumCPU(), load)
		err = m.write(stdout)
	}
	return errors.Join(err, plane.Err(), plane.Stop())
}

func parse(args []string, stderr io.Writer) (sizes, error) {
	flags := flag.NewFlagSet("outside", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var s sizes
	flags.IntVar(&s.objects, "objects", 1000, "how many objects there are")
	flags.IntVar(&s.workers, "workers", 10, "how many the operator reconciles at the same time")
	flags.DurationVar(&s.latency, "latency", 50*time.Millisecond, "what each call of the external system takes")
	flags.DurationVar(&s.poll, "poll", 20*time.Second, "Options.Poll of the operator")
	flags.IntVar(&s.periods, "periods", 6, "for how many of these polls are recorded")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 || s.objects < 1 || s.workers < 1 || s.latency <= 0 || s.poll < time.Second || s.periods < 1 {
		return s, errors.New("there are no arguments but flags, all are positive, and -poll is a second at least; see -help")
	}
	return s, nil
}

// loadAverage returns how many threads wanted a core in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}
