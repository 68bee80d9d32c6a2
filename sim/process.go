// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/schedule"
	"github.com/ctrlkit/ctrlkit/internal/sim/writes"
)

// A Process is one life of an operator: from its start to its end or crash. Clients that it hands
// out work only as long as the process lives.
type Process struct {
	member
	run     *run
	owner   *schedule.Owner // named operator, operator-2 after the first restart, ...
	cancel  context.CancelCauseFunc
	done    <-chan struct{} // closed when cancel was called; nil for a client of the script
	caches  *caches
	results *reconciles
	reads   *reads
	began   time.Time
	user    bool // it is a client of the script: faults strike at its watches only

	// Guarded by processes.mu:
	skew     time.Duration // of the clock
	stopping bool          // its context was canceled
	ended    bool          // Operator has returned
}

// processesOf returns a function that makes the processes of a run.
func processesOf(r *run) func(name string, cancel context.CancelCauseFunc, done <-chan struct{}) *Process {
	return func(name string, cancel context.CancelCauseFunc, done <-chan struct{}) *Process {
		return newProcess(r, name, cancel, done)
	}
}

func newProcess(r *run, name string, cancel context.CancelCauseFunc, done <-chan struct{}) *Process {
	p := &Process{member: r.fakes.Member(), run: r, owner: &schedule.Owner{Name: name}, cancel: cancel, done: done, caches: newCaches(), results: newReconciles(), reads: newReads(r.scheme, r.cluster.Server.ResourceFor), began: time.Now()}
	p.caches.handled, p.results.reads = p.reads.handled, p.reads
	return p
}

// Config returns what rest.InClusterConfig returns in a cluster, without a limit of the request
// rate.
func (p *Process) Config() *rest.Config {
	return &rest.Config{
		Host:      "http://" + p.owner.Name + ".sim.invalid",
		Transport: transport{p},
		QPS:       -1,
	}
}

// Scheme returns the scheme of the workload.
func (p *Process) Scheme() *runtime.Scheme { return p.run.scheme }

// ManagerOptions returns the options of a manager in a simulation: the scheme of the workload, the
// log of the simulation, a REST mapper that needs no requests, no servers, no leader election, no
// check that names of controllers are unique, as each run makes them anew, caches whose objects the
// simulator watches, and a client whose reads it sees. An operator that replaces Logger,
// Cache.NewInformer or NewClient works, too, but the simulator does not see then whether its last
// reconciles have failed, whether it changes objects of its caches in place, or whether it reads
// what it does not watch. One that replaces NewCache, and does not wrap this one, hangs when it is
// stopped while its caches start.
func (p *Process) ManagerOptions() ctrl.Options {
	return ctrl.Options{
		Scheme:                 p.Scheme(),
		MapperProvider:         newMapper(p),
		Logger:                 p.Logger(),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: new(true)},
		Cache:                  cache.Options{NewInformer: p.caches.newInformer},
		NewCache:               p.newCache,
		NewClient:              p.reads.newClient,
	}
}

// Logger returns a logger that writes into the trace of the run.
func (p *Process) Logger() logr.Logger { return p.results.logger(p.run.trace.Logger(p.owner.Name)) }

// Clock returns the clock of the process. It shows what package time shows, until a fault makes it
// jump: an operator that decides by the clock should read this one in its simulations.
func (p *Process) Clock() clock.PassiveClock {
	p.run.processes.useClock()
	return processClock{p}
}

type processClock struct{ p *Process }

func (c processClock) Now() time.Time                  { return time.Now().Add(c.p.run.processes.skewOf(c.p)) }
func (c processClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// External returns the connection to an external system of the workload. It panics when the
// workload has none of that name.
func (p *Process) External(name string) *ExternalClient {
	s, ok := p.run.externals[name]
	if !ok {
		panic(fmt.Sprintf("sim: the workload has no external system %q: list it in Workload.Externals", name))
	}
	return &ExternalClient{process: p, system: s}
}

// A Call describes a call to something outside the cluster, for [Process.Call].
type Call struct {
	System  string    // which system
	Verb    string    // what is done: create, get, ...
	What    string    // to what
	Mutates bool      // whether it has an effect outside
	Owner   types.UID // of the object for which it is done, if it mutates and is known

	latency time.Duration
}

// outside returns the call as the parts of the simulation see it.
func (c Call) outside() external.Call {
	return external.Call{System: c.System, Verb: c.Verb, What: c.What, Mutates: c.Mutates, Owner: c.Owner}
}

// String returns the call in a line.
func (c Call) String() string { return c.outside().String() }

// Call makes a call of a fake that the user has written visible to the simulator: faults can come
// before it, after it and instead of it. do has the effect, at once; it must not wait, use the world, or
// send a request to the API server, which would hang. Call returns do's error, or that of a fault.
func (p *Process) Call(ctx context.Context, call Call, do func() error) error {
	outside := call.outside()
	if call.Mutates {
		outside.Origin = &external.Origin{Actor: p.owner.Name, Stack: writes.Stack(1)}
	}
	answer, err := p.run.gateway.call(ctx, p, outside, call.latency, do)
	switch {
	case err != nil:
		return err
	case answer.Panics:
		panicIfReconciling()
		return inject.ErrCrashed
	}
	return answer.Err
}

// HTTP returns a transport to a fake of an external system that is written as an http.Handler.
// Each request is a [Call] whose verb is the method and that mutates unless the method is GET,
// HEAD or OPTIONS. owner returns for which object a request is made, and may be nil.
func (p *Process) HTTP(system string, handler http.Handler, owner func(*http.Request) types.UID) http.RoundTripper {
	return httpExternal{p, system, handler, owner}
}
