// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command scale measures what grows with the number of objects, on a real control plane: the start of a
// new process, its memory, the time until a successor writes, and a change of every object.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/controlplane"
)

const usage = `Measure ctrlkit and a careful operator by hand with many objects, each with three
children, on a real control plane, and print a table as Markdown: a column for
each number of objects, and how much more the last one is than the one before,
for each object: 1.00 is linear. Run it in the directory bench.

Examples:
  # 10,000 and 100,000 objects: hours, and some 10 GB for etcd and the API server
  go run ./scale > scale.md

  # the same in half the time: both keep the same objects, one after the other
  go run ./scale -shared > scale.md

  # in some minutes
  go run ./scale -objects 200,1000

Flags:
`

// quiet is the time without a request or a reconcile after which an operator is idle.
const quiet = time.Second

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // there is nothing to stop any more
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(stderr)
	objects := flags.String("objects", "10000,100000", "numbers of objects, growing, separated by commas")
	operators := flags.String("operators", "ctrlkit,careful", "operators of the program operator, separated by commas")
	shared := flags.Bool("shared", false, "have all operators keep the objects of the first one, with its labels and annotations, in half the time")
	profiles := flags.String("profiles", "", "directory for CPU profiles of each start")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	sizes, err := parseSizes(*objects)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ctrlkit-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary one
	b := &bench{progress: stderr, program: filepath.Join(dir, "operator"), profiles: *profiles, shared: *shared, sizes: sizes, table: newTable(sizes)}
	return errors.Join(b.measure(ctx, strings.Split(*operators, ",")), b.table.write(stdout))
}

func parseSizes(text string) ([]int, error) {
	var sizes []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || len(sizes) > 0 && n <= sizes[len(sizes)-1] {
			return nil, fmt.Errorf("-objects %q: it is growing numbers, such as 10000,100000", text)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

type bench struct {
	progress io.Writer
	program  string
	profiles string // directory, or empty
	shared   bool   // the operators keep the objects of the first one
	sizes    []int
	table    *results

	user       client.Client
	kubeconfig string
}

func (b *bench) measure(ctx context.Context, operators []string) (err error) {
	build := exec.CommandContext(ctx, "go", "build", "-o", b.program, "./operator")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the operators, in the directory bench: %w\n%s", err, out)
	}
	plane, err := controlplane.Start(ctx, controlplane.Options{CRDs: []string{filepath.Join("widget", "crd.yaml")}, Progress: b.progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	scheme, err := widget.NewScheme()
	if err != nil {
		return err
	}
	config := plane.Config()
	config.QPS = -1
	if b.user, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	b.kubeconfig = plane.Kubeconfig()
	for i, operator := range operators {
		for _, size := range b.sizes {
			t := &turn{bench: b, operator: operator, namespace: fmt.Sprintf("%s-%d", operator, size), size: size}
			if b.shared && i > 0 {
				t.namespace = fmt.Sprintf("%s-%d", operators[0], size)
			}
			if err := t.run(ctx, !b.shared || i == 0); err != nil {
				return fmt.Errorf("%s, %d objects: %w", operator, size, err)
			}
		}
	}
	return nil
}

// A turn is one operator with one number of objects, in one namespace.
type turn struct {
	*bench
	operator, namespace string
	size                int
}

func (t *turn) run(ctx context.Context, create bool) error {
	if create {
		if err := t.user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}}); err != nil {
			return err
		}
		if err := t.create(ctx); err != nil {
			return err
		}
	}
	for _, phase := range []func(context.Context) error{t.restart, t.replace, t.elect, t.upgrade} { // the last takes the longest
		if err := phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t *turn) add(row string, value float64) {
	fmt.Fprintf(t.progress, "%s, %d objects: %s %.2f\n", t.operator, t.size, row, value)
	t.table.add(t.operator, row, t.size, value)
}

// start starts the operator with settings to which it adds what all have in common.
func (t *turn) start(ctx context.Context, settings process.Settings) (*process.Process, error) {
	settings.Kubeconfig, settings.Operator, settings.Namespace, settings.Workers = t.kubeconfig, t.operator, t.namespace, 10
	return process.Start(ctx, t.program, settings)
}

// each calls do for each object, ten at a time.
func (t *turn) each(ctx context.Context, do func(ctx context.Context, in metav1.ObjectMeta) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for i := range t.size {
		group.Go(func() error { return do(ctx, metav1.ObjectMeta{Namespace: t.namespace, Name: fmt.Sprintf("w%07d", i)}) })
	}
	return group.Wait()
}

// create creates the objects while the operator runs.
func (t *turn) create(ctx context.Context) error {
	p, err := t.start(ctx, process.Settings{})
	if err != nil {
		return err
	}
	begin := time.Now()
	err = t.each(ctx, func(ctx context.Context, in metav1.ObjectMeta) error {
		return t.user.Create(ctx, &widget.Widget{ObjectMeta: in, Spec: widget.Spec{First: "one", Second: "two", Third: "three"}})
	})
	if err == nil {
		var stats process.Stats
		if stats, err = p.AwaitIdle(ctx, quiet); err == nil {
			t.add("create all, s", (time.Since(begin) - stats.Quiet).Seconds())
		}
	}
	return errors.Join(err, p.Stop())
}

// restart measures a new process that finds all objects done.
func (t *turn) restart(ctx context.Context) error {
	begin := time.Now()
	p, err := t.start(ctx, process.Settings{})
	if err != nil {
		return err
	}
	err = t.observe(ctx, p, begin)
	return errors.Join(err, p.Stop())
}

func (t *turn) observe(ctx context.Context, p *process.Process, begin time.Time) error {
	if t.profiles != "" {
		if err := p.Profile(filepath.Join(t.profiles, fmt.Sprintf("%s-%d.start.cpu", t.operator, t.size))); err != nil {
			return err
		}
	}
	stats, err := p.Await(ctx, "the first reconciles", func(s process.Stats) bool { return s.Reconciles >= t.size })
	if err != nil {
		return err
	}
	t.add("start until each was seen, s", time.Since(begin).Seconds())
	t.add("start: CPU, s", stats.CPU.Seconds())
	t.add("start: writes", float64(stats.Writes))
	if _, err := p.AwaitIdle(ctx, quiet); err != nil {
		return err
	}
	if t.profiles != "" {
		if err := p.EndProfile(); err != nil {
			return err
		}
	}
	heap, err := p.Heap()
	if err != nil {
		return err
	}
	t.add("steady heap, MB", float64(heap.Heap)/1e6)
	peak, err := p.PeakMemory()
	if err != nil {
		return err
	}
	t.add("peak resident memory of the start, MB", float64(peak)/1e6)
	return nil
}

// upgrade measures a change of the field from which one field of a child follows, in each object.
func (t *turn) upgrade(ctx context.Context) error {
	p, err := t.start(ctx, process.Settings{})
	if err != nil {
		return err
	}
	return errors.Join(t.changeAll(ctx, p), p.Stop())
}

func (t *turn) changeAll(ctx context.Context, p *process.Process) error {
	before, err := t.awaitDone(ctx, p)
	if err != nil {
		return err
	}
	begin := time.Now()
	err = t.each(ctx, func(ctx context.Context, in metav1.ObjectMeta) error {
		return t.user.Patch(ctx, &widget.Widget{ObjectMeta: in}, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"first":%q}}`, "changed for "+t.operator)))
	})
	if err != nil {
		return err
	}
	stats, err := p.AwaitIdle(ctx, quiet)
	if err != nil {
		return err
	}
	did := stats.Sub(before)
	t.add("change one field of each, s", (time.Since(begin) - stats.Quiet).Seconds())
	t.add("change one field of each: writes", float64(did.Writes))
	t.add("change one field of each: CPU, s", did.CPU.Seconds())
	return nil
}

// replace measures a resync, and how long it takes from the SIGKILL of a process to the first write
// of the next one, which begins then, for an object that changes meanwhile.
func (t *turn) replace(ctx context.Context) error {
	first, err := t.start(ctx, process.Settings{Resync: 20*time.Second + time.Duration(t.size)*time.Millisecond})
	if err != nil {
		return err
	}
	if err := t.resync(ctx, first); err != nil {
		return errors.Join(err, first.Stop())
	}
	begin := time.Now()
	if err := t.killAndChange(ctx, first, "again for "+t.operator); err != nil {
		return err
	}
	second, err := t.start(ctx, process.Settings{})
	if err != nil {
		return err
	}
	return t.succeed(ctx, second, begin, "SIGKILL to the first write of the next process, s")
}

// resync measures the first time that all objects of a process are reconciled without a change.
func (t *turn) resync(ctx context.Context, p *process.Process) error {
	before, err := t.awaitDone(ctx, p)
	if err != nil {
		return err
	}
	after, err := p.Await(ctx, "a resync", func(s process.Stats) bool { return s.Reconciles >= before.Reconciles+t.size })
	if err != nil {
		return err
	}
	did := after.Sub(before)
	t.add("resync of all: CPU, s", did.CPU.Seconds())
	t.add("resync of all: writes", float64(did.Writes))
	_, err = p.AwaitIdle(ctx, quiet)
	return err
}

// elect measures how long it takes from the SIGKILL of the leader to the first write of a process
// that has waited with filled caches.
func (t *turn) elect(ctx context.Context) error {
	leader, err := t.start(ctx, process.Settings{Election: true})
	if err != nil {
		return err
	}
	if _, err := t.awaitDone(ctx, leader); err != nil {
		return errors.Join(err, leader.Stop())
	}
	waiting, err := t.start(ctx, process.Settings{Election: true})
	if err != nil {
		return errors.Join(err, leader.Stop())
	}
	if err := awaitCaches(ctx, waiting); err != nil {
		return errors.Join(err, waiting.Stop(), leader.Stop())
	}
	begin := time.Now()
	if err := t.killAndChange(ctx, leader, "elected for "+t.operator); err != nil {
		return errors.Join(err, waiting.Stop())
	}
	return t.succeed(ctx, waiting, begin, "SIGKILL of the leader to the first write of one that waited, s")
}

// awaitDone returns when a process has seen all objects, and has nothing to do any more.
func (t *turn) awaitDone(ctx context.Context, p *process.Process) (process.Stats, error) {
	if _, err := p.Await(ctx, "the first reconciles", func(s process.Stats) bool { return s.Reconciles >= t.size }); err != nil {
		return process.Stats{}, err
	}
	return p.AwaitIdle(ctx, quiet)
}

// awaitCaches returns when a process that waits for its election has nothing to do any more.
func awaitCaches(ctx context.Context, p *process.Process) error {
	const pause, most = 2 * time.Second, 100 * time.Millisecond // of CPU in a pause
	for {
		before, err := p.Stats()
		if err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		after, err := p.Stats()
		if err != nil || after.Sub(before).CPU < most {
			return err
		}
	}
}

// killAndChange kills a process, and changes the last object.
func (t *turn) killAndChange(ctx context.Context, p *process.Process, value string) error {
	if err := p.Stop(); err != nil { // it kills
		return err
	}
	obj := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: fmt.Sprintf("w%07d", t.size-1)}}
	return t.user.Patch(ctx, obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"first":%q}}`, value)))
}

// succeed measures the time until the first write of a process, and stops it.
func (t *turn) succeed(ctx context.Context, p *process.Process, begin time.Time, row string) error {
	_, err := p.Await(ctx, "the first write", func(s process.Stats) bool { return s.Writes > 0 })
	if err == nil {
		t.add(row, time.Since(begin).Seconds())
	}
	return errors.Join(err, p.Stop())
}
