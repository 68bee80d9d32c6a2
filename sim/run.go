// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
	"github.com/ctrlkit/ctrlkit/internal/sim/actor"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fakes"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/sim/needs"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/players"
	"github.com/ctrlkit/ctrlkit/internal/sim/schedule"
	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
	"github.com/ctrlkit/ctrlkit/internal/sim/writes"
)

type oracleSet map[oracle.Name]string

// run is one run of a workload: it wires the parts together. Each act of the operator takes one way
// through them: a request or call leaves a process through the gateway, waits for its turn in the
// schedule, passes the injector, has its effect on the server or an external system, and is seen by
// the judge.
type run struct {
	workload  *Workload
	plan      fault.Plan
	scheme    *k8sruntime.Scheme
	reference *reference  // nil in the run that becomes it
	account   user.Info   // of the operator; nil if it may do everything
	usage     *rbac.Usage // of the rules for the operator; nil if everything is allowed

	trace     *trace.Trace
	schedule  *schedule.Schedule
	cluster   *cluster.Cluster
	externals map[string]*inventory
	systems   map[string]external.System // the externals, and the fakes that list their resources
	fakes     *fakes.Run
	judge     *judge.Judge
	actors    *actor.Actors
	players   *players.Players
	injector  *inject.Injector
	catalog   *inject.Catalog // nil unless reference is
	watches   *watches
	writes    *writes.Log
	needs     *needs.Log
	processes *processes
	gateway   *gateway

	// Only the driver uses the rest.
	aborted     bool
	checkpoints []snapshot.Snapshot
	entries     []int   // for each checkpoint, its entry in the trace
	ended       int     // the last checkpoint of the script
	played      *played // in a simulation of transitions; nil in others
	joint       *joint
}

// backoffCap is how long controller-runtime's rate limiter makes a failing object wait at most, and
// a little more.
const backoffCap = 17 * time.Minute

func newRun(workload *Workload, crds []*apiextensionsv1.CustomResourceDefinition, plan fault.Plan, ref *reference, without oracleSet) (*run, error) {
	allowed, err := permissionsOf(workload)
	if err != nil {
		return nil, err
	}
	r := &run{
		workload: workload, plan: plan, scheme: schemeOf(workload), reference: ref, trace: trace.New(), externals: map[string]*inventory{},
		account: allowed.account, usage: allowed.recorded(), writes: writes.New(), needs: needs.New(),
		played: newPlayed(workload.course),
	}
	r.joint = &joint{run: r}
	server := apiserver.New(apiserver.Options{Now: time.Now, Seed: plan.Seed + 1, Authorizer: authorizerOf(r.usage), Refused: r.refused})
	if err := server.InstallPrepared(prepared(crds)); err != nil {
		return nil, fmt.Errorf("installing the definitions: %w", err)
	}
	for _, d := range crds {
		if c := d.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
			r.trace.Add("sim", "note", "the conversion webhook of "+d.Name+" is not called: only versions with the schema of the stored one can be used")
		}
	}
	r.systems = map[string]external.System{}
	for _, e := range workload.Externals {
		if e.Identity < IdentityName || e.Identity > IdentityNone {
			return nil, fmt.Errorf("external system %q: set its Identity", e.Name)
		}
		r.externals[e.Name] = newInventory(e, time.Now)
		r.systems[e.Name] = r.externals[e.Name]
	}
	r.fakes = fakes.New(slices.Collect(maps.Keys(r.externals))...)
	judged := judge.Options{Plan: plan, Without: without, Systems: r.systems, Rules: workload.rules, Noticed: r.noticed}
	if ref == nil {
		r.catalog = &inject.Catalog{}
	} else {
		judged.Reference = ref.Reference
	}
	r.judge = judge.New(judged)
	r.schedule = schedule.New(schedule.Options{Seed: plan.Seed, Quiet: workload.quiet(), Backoff: backoffCap})
	r.cluster = cluster.New(server, r.trace, r.schedule.Active)
	r.actors = actor.New(r.cluster, r.systems, r.schedule, r.judge, r.trace)
	r.watches = &watches{schedule: r.schedule, cluster: r.cluster, trace: r.trace}
	r.injector = inject.New(inject.Options{
		Plan: plan, Cluster: r.cluster, Actors: r.actors, Judge: recorded{r.judge, r.writes}, Watches: r.watches, Time: r.schedule, Active: r.schedule.Active,
		Trace: r.trace, Catalog: r.catalog,
	})
	r.watches.faults = r.injector
	r.processes = &processes{
		schedule: r.schedule, trace: r.trace, operate: workload.Operator, do: r.do, crashed: r.watches.endOf, ended: r.operatorEnded,
		create: processesOf(r),
	}
	r.gateway = &gateway{
		schedule: r.schedule, cluster: r.cluster, injector: r.injector, watches: r.watches, judge: r.judge, writes: r.writes, exhausted: r.exhausted,
		takeOver: func() { r.fakes.TakeOver(r.systems) }, victim: func(p *Process) inject.Process { return victim{r.processes, p} },
	}
	if r.players, err = castPlayers(workload, r.cluster, r.trace, r.fakes, r.scriptFailed); err != nil {
		return nil, err
	}
	r.schedule.Sources(firstOf{r.watches, r.players}, &background{server: server, active: r.schedule.Active})
	server.OnChange(r.changed)
	return r, nil
}

// noticed records a violation in the trace.
func (r *run) noticed(name oracle.Name, text string) (entry int) {
	r.writes.Noticed()
	entry = r.trace.Len()
	r.trace.Add("sim", "oracle", string(name)+": "+text)
	return entry
}

// changed passes a change of the cluster to those who want to know of it.
func (r *run) changed(c apiserver.Change) {
	if cluster.Ignored(c.Resource) {
		r.players.Changed(c) // a player may be of Leases
		return               // the judge sees Kubernetes Events when they are written
	}
	if r.played != nil {
		r.played.noteWritten(c)
	}
	r.cluster.Changed(c)
	r.writes.Changed(c)
	r.needs.Changed(c)
	r.judge.Changed(c)
	r.actors.Changed(c)
	r.players.Changed(c)
}

// drive is the life of a run, which ends when script returns. before is how many goroutines there
// were before it.
func (r *run) drive(before int, script func()) *result {
	scripted := make(chan struct{})
	// The script has a goroutine of its own: it waits like an operator does, and this one is the
	// driver, which must not.
	go func() {
		defer close(scripted)
		defer func() { // also when the script ends its goroutine, as t.Fatal does
			r.shutDown()
			_ = r.do("the end", func() error { r.schedule.Stop(); return nil }) //nolint:errcheck // it can't fail
		}()
		script()
	}()
	r.schedule.Run()
	// The driver has stopped: what waits for it from now on would wait for ever.
	r.schedule.Close(errAborted)
	r.watches.endAll()
	<-scripted
	leaked := r.checkGoroutines(before)
	r.judge.End(judge.End{Checkpoints: r.checkpoints, Logs: r.trace.Logs()})
	violations := r.placed(r.judge.Violations())
	return &result{
		plan: r.plan, violations: violations, writes: r.writes.Evidence(violations, r.judge.Names()), fired: r.injector.Fired(), trace: r.trace, requests: r.gateway.requests,
		checkpoints: r.checkpoints, leaked: leaked, run: r, needs: r.needs.Needs(r.cluster.Server.ResourceFor),
	}
}

// placed gives violations that show at a checkpoint, and are noticed at the end, the checkpoint's
// place in the trace.
func (r *run) placed(violations []oracle.Violation) []oracle.Violation {
	for i := range violations {
		if n := violations[i].Checkpoint; n > 0 && n <= len(r.entries) {
			violations[i].Entry = r.entries[n-1]
		}
	}
	return violations
}

// errAborted is what everything gets in a run that can't continue.
var errAborted = errors.New("sim: the run was ended")

// do lets the driver do something for the script at its turn, and waits for it.
func (r *run) do(key string, do func() error) error {
	return r.schedule.Wait(&schedule.Turn{
		Ctx: context.Background(), Key: key, Do: func(t *schedule.Turn) { t.Finish(do()) },
	})
}

// prepare restores what was recorded, creates the objects of the workload and starts the operator.
func (r *run) prepare() error {
	if err := r.importRecorded(); err != nil {
		return err
	}
	for _, obj := range r.workload.Objects {
		if err := r.createObject(obj); err != nil {
			return fmt.Errorf("creating %s of Workload.Objects: %w", r.describeObject(obj), err)
		}
	}
	r.cluster.NotePrerequisites()
	r.judge.Prepared()
	r.injector.Start()
	r.processes.start(0)
	return nil
}

// scriptFailed ends a run whose script or players are wrong.
func (r *run) scriptFailed(text string) {
	r.judge.Report(oracle.ScriptRuns, text)
	r.abort()
}

// awaitsRetry reports whether an operator that is idle has failed as the last, although it does not
// without faults, and may not have tried again for that long.
func (r *run) awaitsRetry() bool {
	judged := r.played != nil || r.reference != nil && !r.reference.fails
	return judged && r.schedule.Quiet() < backoffCap && len(r.processes.failing()) > 0
}

// abort ends the run as soon as possible.
func (r *run) abort() {
	r.aborted = true
	r.judge.Abort()
	r.schedule.CancelIdle(errAborted)
}

// exhausted ends a run whose operator makes requests without end.
func (r *run) exhausted() {
	if r.aborted {
		return
	}
	r.abort()
	r.processes.crashAll()
}

// operatorEnded decides whether to restart an operator that has ended by itself, as a Deployment
// would. Only a fault is a reason to end.
func (r *run) operatorEnded(text string) (restart bool) {
	if r.reference != nil {
		return true // it does not end without a fault, so a fault of the plan is the reason
	}
	for _, fired := range r.injector.Fired() {
		if fired {
			return true
		}
	}
	r.judge.Report(oracle.OperatorRuns, "the operator ended by itself, without a fault: "+text)
	r.abort()
	return false
}

// shutDownTime is how long, in virtual time, an operator may take to end after its context was
// canceled.
const shutDownTime = 2 * time.Minute

// shutDown ends all processes.
func (r *run) shutDown() {
	for r.processes.areStarting() { // a script that fails at once ends the run before that
		time.Sleep(startTime)
	}
	_ = r.do("shut down", func() error { //nolint:errcheck // it can't fail
		r.schedule.CancelTimers()
		r.processes.close()
		return nil
	})
	// The processes need the driver to end, so the script waits by sleeping, not in a turn.
	for deadline := time.Now().Add(shutDownTime); time.Now().Before(deadline); time.Sleep(time.Second) {
		if r.processes.numRunning() == 0 {
			return
		}
	}
	r.judge.Report(oracle.NoGoroutineLeft, fmt.Sprintf("the operator has not returned within %s after its context was canceled", shutDownTime))
}

// addCheckpoint takes the world as it is, for the comparison.
func (r *run) addCheckpoint() {
	r.checkpoints = append(r.checkpoints, r.snapshot())
	r.writes.Checkpoint()
	r.entries = append(r.entries, r.trace.Len())
	r.trace.Add("sim", "check", fmt.Sprintf("checkpoint %d", len(r.checkpoints)))
}

// snapshot takes the world as it is.
func (r *run) snapshot() snapshot.Snapshot {
	r.fakes.TakeOver(r.systems)
	source := snapshot.Source{Objects: r.cluster.Server.Objects(), Systems: r.systems, Names: r.judge.Names(), Made: r.judge.Made, IsVersion: r.judge.IsVersion}
	source.Normalize = func(o *snapshot.Object) bool {
		if normalize := r.workload.Normalize; normalize != nil && !normalize((*Object)(o)) {
			return false
		}
		if r.played != nil {
			transition.Forget(o.Resource.Group, o.Content)
		}
		return true
	}
	return snapshot.Take(source)
}
