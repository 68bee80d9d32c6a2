// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Options are what an engine needs. Name and Client are needed, all else may be zero.
type Options[T client.Object] struct {
	// Name is the name of the controller: of its metrics, its field manager and its finalizer. A
	// DNS label, unique in the process.
	Name string

	// Client reads from a cache, as that of a manager does, and writes.
	Client client.Client

	// APIReader reads from the API server, past the cache: that is Manager.GetAPIReader. Steps find it
	// in their request. The engine asks it once for each object and process, before the first write
	// that is made for the object, whether the cache is behind: after a restart it may be as far as
	// an API server is, and what a step does for an object that is not wanted any more can't always
	// be undone. It also asks when it suspects a hot loop: what a write to an object that is in no
	// cache will change, and who has written it.
	APIReader client.Reader

	// Finalizer is what keeps an object until the clean-up is done, if a step is a [Cleaner]: a
	// qualified name. By default it is the API group of T and Name, "example.com/backup". Objects
	// keep the old one when it changes: put that into RetiredFinalizers.
	Finalizer string

	// RetiredFinalizers are finalizers that older versions of the operator have put on objects:
	// under another name, or when there was still a Cleaner. They are taken off: from a living
	// object by the next reconcile, from one that is being deleted after its clean-up, if there is
	// any.
	RetiredFinalizers []string

	// Recorder records one event for each condition that becomes bad with severity Warning or
	// Error, and for each finalizer that another client has removed. Waits and other conditions of
	// severity Info make no event. Without it there are no events.
	Recorder events.EventRecorder

	// Observers are told of everything that happens.
	Observers []journal.Observer

	// Failures judges errors.
	Failures failure.Table

	// Retired are types of conditions that older versions of the operator kept. They are removed
	// from objects.
	Retired []string

	// SkipUnchanged ends a reconcile before its steps when nothing can have changed for them: the
	// reconcile before did all its work without a write, a failure or a wait, and nothing that it
	// read has changed since, neither the object nor what was read through Request.Client, which
	// is compared with the cache by resource versions. A requested time is kept.
	//
	// It is right only if the steps depend on nothing else:
	//   - they read through Request.Client, from its cache;
	//   - they request a time when they depend on the time;
	//   - they request a time within which to observe what is outside the cluster.
	//
	// Package sim finds out if they depend on more. As a precaution the steps run once an hour all
	// the same, if anything triggers a reconcile.
	SkipUnchanged bool

	// Controller are options for the controller that [Engine.Complete] makes.
	Controller controller.Options
}

// longestRest is how long the inputs are believed.
const longestRest = time.Hour

// An Engine reconciles the objects of one kind in steps. It is made by [New], and safe for
// concurrent use.
type Engine[T client.Object] struct {
	options   Options[T]
	plan      *plan[T]
	gvk       schema.GroupVersionKind
	kind      schema.GroupKind
	observer  journal.Observer
	limiter   *failure.Limiter[reconcile.Request]
	memories  memories[T]
	causes    *causes
	finalizer string // empty if nothing is to be cleaned up
	status    statusType
	summary   *summary // the claim to the computed conditions, once the controller is made
	// wholeStatus is true once the API server has refused a first status in which fields were
	// missing.
	wholeStatus atomic.Bool
	// namespaced says whether the objects have a namespace. It asks what the cluster serves, once.
	namespaced func() bool
}

var _ reconcile.Reconciler = (*Engine[client.Object])(nil)

// New returns an engine of steps. The error names all mistakes in the options and the steps.
func New[T client.Object](options Options[T], steps ...Step[T]) (*Engine[T], error) {
	e := &Engine[T]{options: options, plan: newPlan(steps), observer: journal.Observers(options.Observers...)}
	e.limiter = failure.NewLimiter[reconcile.Request]()
	var mistakes []error
	if len(validation.IsDNS1123Label(options.Name)) > 0 {
		mistakes = append(mistakes, fmt.Errorf("name %q: a controller's name is a DNS label, for example \"backup\"", options.Name))
	}
	mistakes = append(mistakes, e.checkSteps()...)
	if t := reflect.TypeFor[T](); t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, errors.Join(append(mistakes, fmt.Errorf("type %v: an engine is for a pointer to a struct, such as *v1.Backup", t))...)
	}
	if options.Client == nil {
		return nil, errors.Join(append(mistakes, errors.New("no client: use that of the manager"))...)
	}
	gvk, err := apiutil.GVKForObject(e.newObject(), options.Client.Scheme())
	if err != nil {
		return nil, errors.Join(append(mistakes, fmt.Errorf("kind of %T: %w: register it with the scheme of the manager", e.newObject(), err))...)
	}
	e.gvk, e.kind = gvk, gvk.GroupKind()
	e.causes = newCauses(e.kind)
	e.status = statusTypeOf(e.newObject())
	e.namespaced = sync.OnceValue(func() bool {
		namespaced, err := options.Client.IsObjectNamespaced(e.newObject())
		return err != nil || namespaced
	})
	if err := e.chooseFinalizer(); err != nil {
		mistakes = append(mistakes, err)
	}
	if _, err := condition.Of(e.newObject()); err != nil && len(e.plan.declared) > 0 {
		mistakes = append(mistakes, fmt.Errorf("a step keeps conditions: %w", err))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, fmt.Errorf("engine %q: %w", options.Name, err)
	}
	return e, nil
}

func (e *Engine[T]) checkSteps() []error {
	var mistakes []error
	seen := make(map[string]bool)
	for _, p := range e.plan.parts {
		name := p.step.Name()
		switch {
		case name == "" || strings.ContainsAny(name, "\n\r"):
			mistakes = append(mistakes, fmt.Errorf("step %d has the name %q: a name is a few words on one line", p.index+1, name))
		case seen[name]:
			mistakes = append(mistakes, fmt.Errorf("two steps have the name %q: errors and explanations could not tell them apart", name))
		}
		seen[name] = true
	}
	if err := condition.Check(e.plan.declared); err != nil {
		mistakes = append(mistakes, err)
	}
	return mistakes
}

func (e *Engine[T]) chooseFinalizer() error {
	for _, retired := range e.options.RetiredFinalizers {
		if len(validation.IsQualifiedName(retired)) > 0 {
			return fmt.Errorf("retired finalizer %q: it is no qualified name, such as \"example.com/%s\"", retired, e.options.Name)
		}
	}
	if !e.plan.cleans {
		if e.options.Finalizer != "" {
			return fmt.Errorf("finalizer %q, but no step has something to clean up: if an older version has put it on objects, it belongs into RetiredFinalizers", e.options.Finalizer)
		}
		return nil
	}
	e.finalizer = e.options.Finalizer
	if e.finalizer == "" && e.kind.Group != "" {
		e.finalizer = e.kind.Group + "/" + e.options.Name
	}
	if len(validation.IsQualifiedName(e.finalizer)) > 0 || !strings.Contains(e.finalizer, "/") {
		return fmt.Errorf("finalizer %q: a step has something to clean up, which needs a qualified name such as \"example.com/%s\"", e.finalizer, e.options.Name)
	}
	if slices.Contains(e.options.RetiredFinalizers, e.finalizer) {
		return fmt.Errorf("finalizer %q is retired and in use: take it out of RetiredFinalizers", e.finalizer)
	}
	return nil
}

// protects reports whether an object has our finalizer, or one that an older version has put there.
func (e *Engine[T]) protects(obj client.Object) bool {
	return e.finalizer != "" && slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool { return f == e.finalizer || e.retired(f) })
}

func (e *Engine[T]) retired(finalizer string) bool {
	return slices.Contains(e.options.RetiredFinalizers, finalizer)
}

func (e *Engine[T]) newObject() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is the type
}

// Finalizer returns the finalizer that the engine puts on its objects, empty if no step has
// something to clean up.
func (e *Engine[T]) Finalizer() string { return e.finalizer }

// Reconcile brings an object nearer to what its spec wants. The error is what has failed, all
// causes joined; waits are not errors.
func (e *Engine[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	memory := e.memories.of(request.NamespacedName)
	r := &run[T]{engine: e, request: request, memory: memory, now: time.Now()}
	r.began = r.now
	causes := e.causes.take(request.NamespacedName)
	if e.observer != nil {
		r.journal = journal.NewRun(e.observer, uuid.NewUUID(), e.options.Name, journal.ObjectOf(e.kind, request.NamespacedName))
		ctx = journal.ContextWithRun(ctx, r.journal)
		r.causes = memory.explainCauses(causes, r.now)
	}
	return r.reconcile(ctx)
}

// A run is one reconcile.
type run[T client.Object] struct {
	engine  *Engine[T]
	request reconcile.Request
	memory  *memory[T]
	journal *journal.Run // nil if nobody listens
	causes  []journal.Cause
	now     time.Time
	began   time.Time

	logger   logr.Logger
	read     T // as the cache has it; it is not a copy
	req      *Request[T]
	core     *core
	saved    saved
	failures int
	saving   sync.Mutex // while the object is saved
	// These are the resource versions of which the base has each part.
	metadataVersion, statusVersion string
	rebased                        bool // another client has changed the object since it was read
	// theirs is what the API server has of a part once the changes of another client are in it,
	// which the base does not have.
	theirs   map[savedPart]T
	stale    bool // the object is older than one that was seen past the cache
	told     bool // the journal was told that it has begun
	newTexts bool // it writes texts of failures that say something else than before
	// beganWith is the resource version after our last write before this reconcile.
	beganWith string
}

func (r *run[T]) reconcile(ctx context.Context) (reconcile.Result, error) {
	// An object of this name that went before comes first, and before the cache is read: what is
	// read first may be that very object, and its Do would make again what the clean-up has
	// removed.
	if r.memory.hasLost() {
		r.startedBlind(ctx)
	}
	if out := r.cleanUpLost(ctx); out.err != nil || out.after > 0 {
		return r.blockSuccessor(ctx, out)
	}
	e := r.engine
	obj := e.newObject()
	err := e.options.Client.Get(ctx, r.request.NamespacedName, obj, sharing...)
	switch {
	case apierrors.IsNotFound(err):
		return r.gone(ctx)
	case err != nil:
		r.startedBlind(ctx)
		return r.finish(ctx, journal.ResultFailed, outcome{err: fmt.Errorf("reading %s %s: %w", e.kind.Kind, r.request, err)})
	}
	r.read = obj
	if r.journal != nil && !r.told {
		r.journal.UID = obj.GetUID() // as long as nobody was told of the run
	}
	if result, ended := r.early(ctx); ended {
		return result, nil
	}
	r.prepare(ctx)
	if r.journal != nil {
		r.started(ctx)
	}
	if reason, message := pause(obj); reason != "" {
		return r.paused(ctx, reason, message)
	}
	if obj.GetDeletionTimestamp().IsZero() {
		return r.do(ctx)
	}
	return r.delete(ctx)
}

// early ends a reconcile before anything is built: because the cache is behind our own last write,
// because the object is slowed down, or because nothing has changed.
func (r *run[T]) early(ctx context.Context) (reconcile.Result, bool) {
	m := r.memory
	m.startFor(r.read)
	m.hot.cool(r.now)
	r.beganWith = m.written
	switch {
	case m.behind(r.read, r.now) || m.childrenBehind(ctx, r.engine.options.Client, r.now):
		m.next, m.failed = r.now.Add(lookAgainBehind), false
		return r.endEarly(ctx, journal.ResultStale, lookAgainBehind), true
	case m.slowed(r.read, r.now):
		return r.endEarly(ctx, journal.ResultWaiting, m.hot.until.Sub(r.now)), true
	case m.atRest(ctx, r.read, r.engine.options.Client, r.now):
		return r.endEarly(ctx, journal.ResultConverged, m.untilLook(r.now)), true
	default:
		m.rest = rest{}
		return reconcile.Result{}, false
	}
}

func (r *run[T]) endEarly(ctx context.Context, how journal.Result, after time.Duration) reconcile.Result {
	if r.journal != nil {
		r.started(ctx)
		switch {
		case how == journal.ResultWaiting && after > 0:
			r.journal.Note(ctx, journal.Requeued{After: after, Why: "hot loop"})
		case how == journal.ResultStale:
			r.journal.Note(ctx, journal.Requeued{After: after, Why: "poll"})
		}
		r.journal.Note(ctx, journal.Finished{Result: how, Duration: time.Since(r.began)})
	}
	return reconcile.Result{RequeueAfter: after}
}

// startedBlind tells that a reconcile has begun of which the object is not known.
func (r *run[T]) startedBlind(ctx context.Context) {
	if r.journal != nil && !r.told {
		r.journal.Note(ctx, journal.Started{Causes: r.causes, Finalizer: r.engine.finalizer})
		r.told = true
	}
}

func (r *run[T]) started(ctx context.Context) {
	if r.told {
		return
	}
	r.journal.Note(ctx, journal.Started{
		Causes: r.causes, Generation: r.read.GetGeneration(), ResourceVersion: r.read.GetResourceVersion(),
		Deleting: !r.read.GetDeletionTimestamp().IsZero(), Finalizer: r.engine.finalizer,
	})
}

// prepare makes the request of the steps.
func (r *run[T]) prepare(ctx context.Context) {
	e := r.engine
	r.core = &core{
		run: r.journal, table: e.options.Failures, owner: e.options.Name,
		self: r.read, hot: &r.memory.hot, apiReader: e.options.APIReader, reads: r.memory.hot.watchReads(), began: r.disputes(ctx),
	}
	if e.options.SkipUnchanged {
		r.core.inputs = &inputs{}
	}
	r.logger = log.FromContext(ctx)
	recording := &recorder{client.WithFieldOwner(e.options.Client, e.options.Name), r.core}
	r.req = &Request[T]{
		Object: r.read.DeepCopyObject().(T), //nolint:errcheck // a copy has the type
		Client: recording, Logger: r.logger, Now: r.now,
		snapshot: r.read, core: r.core, ran: make([]bool, len(e.plan.parts)),
	}
	if e.options.APIReader != nil {
		r.req.APIReader = &liveRecorder{e.options.APIReader, recording}
		if !r.memory.isFresh() {
			r.core.fence = r.ensureFresh
		}
	}
	r.metadataVersion, r.statusVersion = r.read.GetResourceVersion(), r.read.GetResourceVersion()
	r.req.save, r.core.object, r.core.save = r.checkpoint, r.req.Object, r.req.Save
	if e.finalizer != "" {
		r.req.protect = r.putFinalizer
	}
	r.req.complete(e.plan, e.options.Name, e.finalizer)
	if set, err := condition.NewSet(r.req.Object, e.plan.declared, e.options.Retired, r.now); err == nil {
		set.SetPaused("", "")
		r.req.Conditions = set
	}
}

// do runs the steps of an object that is not being deleted.
func (r *run[T]) do(ctx context.Context) (reconcile.Result, error) {
	ctx = context.WithValue(ctx, requestKey{}, r.req)
	out := r.ensureFinalizer(ctx)
	if out.passed {
		out = r.outcome(r.engine.plan.do.Run(ctx))
		r.noteSkipped(ctx)
	}
	out = r.adopt(r.post(ctx, out))
	return r.conclude(ctx, out)
}

// post runs what is owed to the steps, with some time more if the context is done.
func (r *run[T]) post(ctx context.Context, out outcome) outcome {
	r.req.failure = out.err
	if r.engine.plan.post == nil {
		return out
	}
	ctx, cancel := granted(ctx)
	defer cancel()
	after := r.outcome(r.engine.plan.post.Run(ctx))
	return out.join(after)
}

// granted returns ctx while it is not done, and a context that has its values and some time more
// when it is.
func granted(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), ctrlkit.FinallyGrace)
}

// noteSkipped tells which steps were not reached, also because of an exit.
func (r *run[T]) noteSkipped(ctx context.Context) {
	if r.journal == nil {
		return
	}
	last := ""
	for _, p := range r.engine.plan.parts {
		if r.req.ran[p.index] {
			last = p.step.Name()
			continue
		}
		r.journal.Note(ctx, journal.StepSkipped{Step: p.step.Name(), After: last})
	}
}

// conclude computes the conditions of an object that was not being deleted, saves it and says how
// it went.
func (r *run[T]) conclude(ctx context.Context, out outcome) (reconcile.Result, error) {
	r.judge(ctx, &out)
	r.summarize(ctx, &out, "")
	out = r.save(ctx, out)
	switch {
	case out.err != nil:
		return r.finish(ctx, journal.ResultFailed, out)
	case len(out.waits) > 0:
		return r.finish(ctx, journal.ResultWaiting, out)
	}
	r.rememberRest(out)
	return r.finish(ctx, journal.ResultDone, out)
}

// errPanicked stands for the error of a step that has panicked: the action around it makes the real
// one.
var errPanicked = errors.New("panicked")

// judge asks the table about a failure, counts it, and says how long it has to wait.
func (r *run[T]) judge(ctx context.Context, out *outcome) {
	if out.err == nil {
		return
	}
	table := r.engine.options.Failures
	out.verdict = table.Classify(out.err)
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		out.verdict = table.Classify(context.Canceled)
		out.silent = true
	case out.verdict.Class == failure.ClassCanceled:
		// The reconcile goes on: a step has canceled a context of its own, which is an error like
		// any other.
		out.verdict = table.Classify(errors.New(out.err.Error()))
	}
	if out.verdict.Class == failure.ClassConflict && !out.silent {
		// It is repeated without being an error, so that the queue forgets it: it is counted here.
		r.memory.conflicts++
		r.failures, out.delay = r.memory.conflicts, out.verdict.Backoff.Delay(r.memory.conflicts)
		if out.silent = out.verdict.Silent(r.failures); out.silent {
			return
		}
	}
	r.failures, out.delay = r.engine.limiter.Failed(r.request, out.verdict)
	out.silent = out.silent || out.verdict.Silent(max(r.failures, r.memory.conflicts))
}

// finish tells how it ended and turns it into what controller-runtime expects. Beside an error it
// uses the limiter, which knows the delay.
func (r *run[T]) finish(ctx context.Context, how journal.Result, out outcome) (reconcile.Result, error) {
	if out.err != nil && out.verdict.Class == "" {
		r.judge(ctx, &out)
	}
	r.expectChildren()
	slow := r.watchHotLoop(ctx, out.err != nil)
	result := reconcile.Result{RequeueAfter: out.after}
	if slow > 0 {
		result.RequeueAfter = slow
	} else if calm := r.memory.hot.untilCalm(r.now); calm > 0 && (result.RequeueAfter == 0 || calm < result.RequeueAfter) {
		result.RequeueAfter = calm
	}
	result.Priority = out.priority
	r.memory.plan(r.now, result.RequeueAfter, out)
	if r.journal != nil {
		r.tellEnd(ctx, how, out, result)
	}
	switch {
	case out.err == nil:
		r.memory.conflicts = 0
		r.engine.limiter.Forget(r.request)
		return result, nil
	case out.silent && out.verdict.Class == failure.ClassConflict:
		// Nobody has to know of a conflict that the next look resolves: controller-runtime would
		// log it, and count it among the errors.
		r.logger.V(1).Info("Looking again after a conflict", "failure", out.err.Error(), "after", out.delay)
		return reconcile.Result{RequeueAfter: out.delay}, nil
	case errors.Is(out.err, reconcile.TerminalError(nil)):
		return reconcile.Result{}, &retried{out.err}
	default:
		return reconcile.Result{}, out.err
	}
}

// retried is a failure that is tried again, also if the error says that it is terminal:
// controller-runtime would drop it, and what is called terminal is often not. It is the error in
// everything else.
type retried struct{ err error }

func (e *retried) Error() string { return e.err.Error() }

// Is hides that the error is terminal.
func (e *retried) Is(target error) bool {
	return reflect.TypeOf(target) != reflect.TypeOf(reconcile.TerminalError(nil)) && errors.Is(e.err, target)
}

// As sees through.
func (e *retried) As(target any) bool { return errors.As(e.err, target) }

func (r *run[T]) tellEnd(ctx context.Context, how journal.Result, out outcome, result reconcile.Result) {
	o := journal.Outcome{Err: out.err, Class: string(out.verdict.Class), Remedy: out.verdict.Remedy, RequeueAfter: result.RequeueAfter}
	for _, w := range out.waits {
		o.Waits = append(o.Waits, journal.Wait{For: w.For, Every: w.Every})
	}
	switch {
	case out.err != nil:
		why := "backoff"
		if out.verdict.RetryAfter > 0 {
			why = "throttled"
		}
		r.journal.Note(ctx, journal.Requeued{After: out.delay, Why: why, Failures: r.failures})
	case result.RequeueAfter > 0 && r.memory.hot.until.After(r.now):
		r.journal.Note(ctx, journal.Requeued{After: result.RequeueAfter, Why: "hot loop"})
	case result.RequeueAfter > 0:
		r.journal.Note(ctx, journal.Requeued{After: result.RequeueAfter, Why: "time"})
	}
	r.journal.Note(ctx, journal.Finished{Result: how, Outcome: o, Duration: time.Since(r.began)})
}

// key is short for the name of the object.
func (r *run[T]) key() types.NamespacedName { return r.request.NamespacedName }
