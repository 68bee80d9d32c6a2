// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// Options say what is run and what is shown of it.
type Options struct {
	Package    string   // of the operator: a directory, a file in it or an import path
	Args       []string // for the operator
	Kubeconfig string   // of the cluster to use; empty for a control plane of one's own
	CRDs       []string // files and directories with custom resource definitions; nil to find them by convention
	Samples    []string // files and directories with objects to apply; nil to find them by convention
	NoSamples  bool     // apply none
	Namespace  string   // for samples that name none
	Watch      []string // further kinds for the top of the tree
	Logs       bool     // show the operator's log
	LogFile    string   // write the operator's log to this file

	For     time.Duration // end well after so long; 0 for no limit
	Until   []string      // end well when all these conditions hold
	Timeout time.Duration // end badly when the conditions do not hold after so long; 0 for no limit

	// Supervisor is the beginning of a command line that calls Supervise with what follows "--".
	Supervisor []string
	Out        io.Writer // for the objects
	Err        io.Writer // for everything else
}

// ErrOperatorEnded is returned by Run when the operator ended although nobody stopped it.
var ErrOperatorEnded = errors.New("the operator ended")

// ErrConditionsMissed is returned by Run when the conditions did not hold in time.
var ErrConditionsMissed = errors.New("the conditions do not hold")

// ErrWatchingInterrupted is returned by Run, together with the cause of the context's end, when
// that came after the set-up was done.
var ErrWatchingInterrupted = errors.New("watching was interrupted")

// Run runs an operator, with everything that it needs, and shows what becomes of its objects until
// one of the ends that the options name, an error, or the end of ctx, whose cause it then returns.
// Every process that it started has ended when it returns.
func Run(ctx context.Context, options Options) error {
	klog.SetLogger(logr.Discard()) // what matters is returned as an error or shown
	ctrllog.SetLogger(logr.Discard())
	r := &runner{Options: options, queue: newQueue()}
	r.useTerminals()
	return r.run(ctx)
}

// runner is one run.
type runner struct {
	Options
	steps *steps
	live  *screen // nil when standard output is no terminal
	queue *queue

	project     *Project
	crdFiles    []string
	definitions []*apiextensionsv1.CustomResourceDefinition
	manifests   []Manifest
	kinds       []Kind
	conditions  []*Condition

	cluster  *cluster
	plane    *controlplane.ControlPlane // nil when the cluster is somebody else's
	operator *operator
	program  string    // the operator's, as it was built
	logFile  *os.File  // nil when the log is not wanted in a file
	start    time.Time // when the operator was started
}

func (r *runner) useTerminals() {
	colors := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	r.steps = &steps{out: r.Err, width: func() int { return 80 }}
	if file, ok := terminalOf(r.Err); ok && os.Getenv("TERM") != "dumb" {
		size := sizeOf(file)
		r.steps.terminal, r.steps.colors = true, colors
		r.steps.width = func() int { width, _ := size(); return width }
	}
	if file, ok := terminalOf(r.Out); ok && os.Getenv("TERM") != "dumb" {
		r.live = &screen{out: r.Out, size: sizeOf(file)}
	}
}

func (r *runner) run(ctx context.Context) (err error) {
	if err := r.plan(ctx); err != nil {
		return err
	}
	if r.Kubeconfig != "" { // one that does not answer is noticed before the build, which may take minutes
		if err := r.connect(ctx); err != nil {
			return err
		}
	}
	program, err := r.build(ctx)
	if err != nil {
		return err
	}
	defer func() {
		switch stopped := r.stop(); {
		case stopped == nil:
		case errors.Is(err, ErrWatchingInterrupted): // that is no failure, and this one is
			err = stopped
		default:
			err = errors.Join(err, stopped)
		}
	}()
	if r.Kubeconfig == "" {
		if err := r.startControlPlane(ctx); err != nil {
			return err
		}
	}
	if err := r.install(ctx); err != nil {
		return err
	}

	watching, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if err := r.watch(watching, &running); err != nil {
		return err
	}
	if err := r.startOperator(program); err != nil {
		return err
	}
	if err := r.applySamples(ctx); err != nil {
		return err
	}
	return r.show(ctx)
}

// plan finds out everything that can be known before anything is started, so that mistakes are told
// at once.
func (r *runner) plan(ctx context.Context) (err error) {
	if r.project, err = FindProject(ctx, r.Package); err != nil {
		return err
	}
	if r.crdFiles, err = chosen(r.CRDs, r.project.CRDFiles); err != nil {
		return err
	}
	if r.definitions, err = ReadDefinitions(r.crdFiles); err != nil {
		return err
	}
	if len(r.CRDs) > 0 && len(r.definitions) == 0 {
		return fmt.Errorf("there is no custom resource definition in %s", strings.Join(r.CRDs, ", "))
	}
	if !r.NoSamples {
		if err := r.readSamples(); err != nil {
			return err
		}
	}
	r.kinds = builtinKinds()
	for _, definition := range r.definitions {
		r.kinds = append(r.kinds, definedKind(definition))
	}
	return r.parseConditions()
}

// chosen returns the manifests in the paths that were given, or those that are found by convention.
func chosen(paths []string, convention func() ([]string, error)) ([]string, error) {
	if len(paths) == 0 {
		return convention()
	}
	var files []string
	for _, path := range paths {
		found, err := ManifestFiles(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

func (r *runner) readSamples() error {
	files, err := chosen(r.Samples, r.project.SampleFiles)
	if err != nil {
		return err
	}
	for _, file := range files {
		manifests, err := ReadManifests(file)
		if err != nil {
			return err
		}
		r.manifests = append(r.manifests, manifests...)
	}
	return nil
}

// parseConditions reads --until. Kinds that --watch adds are not known yet; they are taken by the
// name that was given.
func (r *runner) parseConditions() error {
	kinds := r.kinds
	for _, name := range r.Watch {
		if len(kindsNamed(name, kinds)) == 0 {
			kind, group, _ := strings.Cut(name, ".")
			kinds = append(kinds, Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Kind: kind}, Operators: true})
		}
	}
	for _, text := range r.Until {
		condition, err := ParseCondition(text, kinds)
		if err != nil {
			return err
		}
		r.conditions = append(r.conditions, condition)
		for i, kind := range r.kinds {
			if condition.path != nil && kind.answersTo(condition.kind) {
				r.kinds[i].Sparse = false // the field may be anywhere in the object
			}
		}
	}
	return nil
}

func (r *runner) build(ctx context.Context) (program string, err error) {
	st := r.steps.begin("operator", "building "+r.Package)
	program, err = r.project.Build(ctx, func(name string) { st.say("compiling " + name) }, stepWriter{st, r.Err})
	if err != nil {
		st.quit()
		return "", err
	}
	r.program = program
	st.done("built " + r.Package)
	return program, nil
}

// stepWriter writes after the line of a step was erased.
type stepWriter struct {
	step *step
	out  io.Writer
}

func (w stepWriter) Write(data []byte) (int, error) {
	w.step.quit()
	return w.out.Write(data)
}

// connect connects to the cluster that was given.
func (r *runner) connect(ctx context.Context) (err error) {
	st := r.steps.begin("cluster", "connecting")
	defer st.quit()
	config, where, err := loadKubeconfig(r.Kubeconfig)
	if err != nil {
		return err
	}
	if r.cluster, err = newCluster(config); err != nil {
		return err
	}
	version, err := r.cluster.version()
	if err != nil {
		return interrupted(ctx, err)
	}
	st.done(fmt.Sprintf("Kubernetes %s, %s", version, where))
	return nil
}

func (r *runner) install(ctx context.Context) error {
	st := r.steps.begin("definitions", "installing")
	defer st.quit()
	if len(r.definitions) == 0 {
		st.skip("none: no config/crd beside or above the package; --crds names a directory")
		return nil
	}
	names := make([]string, len(r.definitions))
	for i, definition := range r.definitions {
		names[i] = definition.Name
	}
	st.say("installing " + strings.Join(names, ", "))
	if err := r.cluster.installDefinitions(ctx, r.definitions); err != nil {
		return err
	}
	st.done(strings.Join(names, ", "))
	return nil
}

func (r *runner) watch(ctx context.Context, running *sync.WaitGroup) error {
	for _, name := range r.Watch {
		kind, err := r.cluster.resolve(name)
		if err != nil {
			return err
		}
		r.addTopKind(kind)
	}
	changes := make(chan Change)
	running.Go(func() {
		for {
			select {
			case change := <-changes:
				r.queue.put(item{change: &change})
			case <-ctx.Done():
				return
			}
		}
	})
	w := &watcher{cluster: r.cluster, changes: changes, troubled: func(kind Kind, err error) {
		r.queue.put(item{source: "watch", line: fmt.Sprintf("%s: %v", kind.Plural, err)})
	}}
	return w.start(ctx, r.kinds, running)
}

// addTopKind puts a kind that may be watched already at the top of the tree.
func (r *runner) addTopKind(kind Kind) {
	for i := range r.kinds {
		if r.kinds[i].GroupKind() == kind.GroupKind() {
			r.kinds[i].Operators = true
			return
		}
	}
	r.kinds = append(r.kinds, kind)
}

func (r *runner) startOperator(program string) error {
	st := r.steps.begin("operator", "starting")
	defer st.quit()
	if r.LogFile != "" {
		var err error
		if r.logFile, err = os.Create(r.LogFile); err != nil {
			return fmt.Errorf("creating the file for the operator's log: %w", err)
		}
	}
	log := &logTail{pass: r.passLog}
	kubeconfig := r.Kubeconfig
	if r.plane != nil {
		kubeconfig = r.plane.Kubeconfig()
	}
	operator, err := startOperator(r.Supervisor, append([]string{program}, r.Args...), []string{"KUBECONFIG=" + kubeconfig}, log)
	if err != nil {
		return err
	}
	r.operator, r.start = operator, time.Now()
	started := "started"
	if r.LogFile != "" {
		started += ", its log is in " + r.LogFile
	}
	st.done(started)
	return nil
}

// passLog takes a line of the operator's log to where it is wanted.
func (r *runner) passLog(text string) {
	if r.Logs {
		r.queue.put(item{source: "operator", line: text})
	}
	if r.logFile != nil {
		fmt.Fprintln(r.logFile, text)
	}
}

// applySamples applies the samples; it ends early when the operator does.
func (r *runner) applySamples(ctx context.Context) error {
	if r.NoSamples {
		return nil
	}
	st := r.steps.begin("samples", "applying")
	defer st.quit()
	if len(r.manifests) == 0 {
		st.skip("none: no config/samples beside or above the package; --samples names a file or directory")
		return nil
	}
	applying, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-r.operator.ended:
			cancel(ErrOperatorEnded)
		case <-applying.Done():
		}
	}()
	var names []string
	var refused []error
	patience := retryFor
	for _, manifest := range r.manifests {
		err := r.cluster.apply(applying, manifest, r.Namespace, &patience, st.say)
		switch {
		case errors.Is(context.Cause(applying), ErrOperatorEnded):
			return r.operatorEnded()
		case applying.Err() != nil:
			return context.Cause(applying)
		case err != nil:
			refused = append(refused, err)
			continue
		}
		obj := manifest.Object
		names = append(names, fmt.Sprintf("%s %s", obj.GetKind(), strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/")))
	}
	if len(refused) > 0 {
		return samplesRefused(refused, len(r.manifests))
	}
	st.done(summary(names))
	return nil
}

// samplesRefused says which of so many samples could not be applied.
func samplesRefused(refused []error, all int) error {
	if all == 1 || len(refused) == 1 {
		return refused[0]
	}
	return fmt.Errorf("%d of %d samples can't be applied:\n%w", len(refused), all, errors.Join(refused...))
}

// summary joins names and leaves out those that are too many to read.
func summary(names []string) string {
	const enough = 4
	if len(names) <= enough {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough-1], ", "), len(names)-enough+1)
}

// refreshEvery is the highest rate at which the picture is redrawn, and ageEvery the lowest: ages
// grow.
const (
	refreshEvery = 200 * time.Millisecond
	ageEvery     = time.Second
)

// show shows what happens until the end.
func (r *runner) show(ctx context.Context) error {
	world := NewWorld(r.topKinds()...)
	display := r.display()
	err := r.follow(ctx, world, display)
	display.leave(world, time.Now())
	if errors.Is(err, ErrOperatorEnded) {
		return r.operatorEnded()
	}
	return err
}

// follow feeds the display until the end.
func (r *runner) follow(ctx context.Context, world *World, display display) error {
	var ended, timedOut <-chan time.Time
	if r.For > 0 {
		ended = time.After(r.For)
	}
	if r.Timeout > 0 {
		timedOut = time.After(r.Timeout)
	}
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	changed, drawn := true, time.Time{}
	for {
		select {
		case <-r.queue.ready:
			changed = true
			if err := r.takeItems(world, display); err != nil {
				return err
			}
			if r.conditionsHold(world) {
				return nil
			}
		case now := <-ticker.C:
			if changed || now.Sub(drawn) >= ageEvery {
				if err := display.refresh(world, now); err != nil {
					return fmt.Errorf("drawing: %w", err)
				}
				changed, drawn = false, now
			}
		case <-r.operator.ended:
			return errors.Join(r.takeItems(world, display), ErrOperatorEnded)
		case <-r.planeBroke():
			return fmt.Errorf("the control plane broke: %w", r.plane.Err())
		case <-ended:
			return nil
		case <-timedOut:
			return r.conditionsMissed(world)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrWatchingInterrupted, context.Cause(ctx))
		}
	}
}

func (r *runner) takeItems(world *World, display display) error {
	for _, item := range r.queue.take() {
		if item.change == nil {
			display.log(item.source, item.line)
			continue
		}
		for _, notice := range world.Apply(*item.change) {
			if err := display.tell(notice, item.at); err != nil {
				return fmt.Errorf("writing what changed: %w", err)
			}
		}
	}
	return nil
}

func (r *runner) conditionsHold(world *World) bool {
	for _, condition := range r.conditions {
		if holds, _ := condition.Holds(world); !holds {
			return false
		}
	}
	return len(r.conditions) > 0
}

// conditionsMissed says which conditions do not hold, and what there is instead.
func (r *runner) conditionsMissed(world *World) error {
	var missed []string
	for _, condition := range r.conditions {
		if holds, missing := condition.Holds(world); !holds {
			missed = append(missed, fmt.Sprintf("%s (%s)", condition.Text, missing))
		}
	}
	return fmt.Errorf("%w after %v: %s", ErrConditionsMissed, r.Timeout, strings.Join(missed, "; "))
}

// operatorEnded describes the end of the operator: a panic by its first line and the place in the
// operator's code, everything else by the last that it logged. Stacks are left to a file.
func (r *runner) operatorEnded() error {
	<-r.operator.ended
	err := fmt.Errorf("%w: %s after %s", ErrOperatorEnded, r.operator.howItEnded(), age(time.Since(r.start)))
	lines := r.operator.log.last()
	if len(lines) == 0 {
		return fmt.Errorf("%w; it logged nothing", err)
	}
	if p, ok := panicIn(lines, r.project.ModuleDir); ok {
		return fmt.Errorf("%w: it panicked: %s%s", err, p, r.whereTheLogIs(lines))
	}
	if r.Logs {
		return err
	}
	shown, left := withoutStacks(lines)
	where := ""
	if left || len(shown) > tailLines {
		where = r.whereTheLogIs(lines)
	}
	shown = shown[max(0, len(shown)-tailLines):]
	return fmt.Errorf("%w; its last lines:\n    %s%s", err, strings.Join(shown, "\n    "), where)
}

// whereTheLogIs says in which file the log is to be found. When it was not wanted in one, the lines
// that are left of it are written to one.
func (r *runner) whereTheLogIs(lines []string) string {
	file := r.LogFile
	if file == "" {
		file = r.program + ".log"
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return fmt.Sprintf("\n    its log could not be kept: %v; --logs=FILE writes it", err)
		}
	}
	return "\n    its log is in " + file
}

func (r *runner) topKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, kind := range r.kinds {
		if kind.Operators {
			kinds = append(kinds, kind.GroupKind())
		}
	}
	return kinds
}

func (r *runner) display() display {
	if r.live == nil {
		return &plainDisplay{plain: Plain{Writer: r.Out, Start: r.start}, logs: r.Err}
	}
	return &liveDisplay{screen: r.live, colors: r.steps.colors, title: r.title(), hint: r.hint(), start: r.start}
}

func (r *runner) title() string {
	title := filepath.Base(r.project.ImportPath)
	if len(r.Until) > 0 {
		title += " · until " + strings.Join(r.Until, " and ")
	}
	return title
}

// hint says what to do while there is nothing to see.
func (r *runner) hint() string {
	var names []string
	for _, kind := range r.kinds {
		if kind.Operators {
			names = append(names, kind.Kind)
		}
	}
	if len(names) == 0 {
		return "no kinds to show: --watch KIND names one, --crds DIR installs the operator's"
	}
	return "no " + strings.Join(names, " or ") + " yet: create one with kubectl, or give --samples"
}

// stop stops every process that was started.
func (r *runner) stop() error {
	if r.operator == nil && r.plane == nil {
		return nil
	}
	st := r.steps.begin("stopping", "the operator")
	defer st.quit()
	if r.operator != nil {
		r.operator.stop()
	}
	if r.logFile != nil {
		defer r.logFile.Close() // every line was written at once
	}
	if r.plane == nil {
		st.done("the operator has ended; the cluster keeps the objects")
		return nil
	}
	st.say("the control plane")
	if err := r.plane.Stop(); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	st.done("every process has ended")
	return nil
}
