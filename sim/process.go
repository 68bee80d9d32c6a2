// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// A Process is one life of an operator: from its start to its end or crash. What it hands out works only as long as the process lives.
type Process struct {
	world  *World
	name   string // operator, operator-2 after the first restart, ...
	cancel context.CancelCauseFunc
	skew   time.Duration

	// Guarded by world.mu:
	dead     bool // crashed: nothing that it does reaches anybody
	stopping bool // told to stop, gracefully
	ended    bool // Operator has returned
}

// errCrashed is what everything answers to the goroutines that are left of a crashed process.
var errCrashed = errors.New("sim: this process has crashed")

// Config returns what rest.InClusterConfig returns in a cluster. The content type is JSON and there is no limit of the request rate.
func (p *Process) Config() *rest.Config {
	return &rest.Config{
		Host:          "http://" + p.name + ".sim.invalid",
		Transport:     transport{p},
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
		QPS:           -1,
	}
}

// Scheme returns the scheme of the workload.
func (p *Process) Scheme() *runtime.Scheme { return p.world.scheme }

// ManagerOptions returns the options of a manager in a simulation: the scheme of the workload, the log of the simulation, no servers, no
// leader election, and no check that names of controllers are unique, as each run makes them anew.
func (p *Process) ManagerOptions() ctrl.Options {
	return ctrl.Options{
		Scheme:                 p.Scheme(),
		Logger:                 p.Logger(),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: new(true)},
	}
}

// Logger returns a logger that writes into the trace of the run.
func (p *Process) Logger() logr.Logger { return p.world.trace.logger(p.name) }

// Clock returns the clock of the process. It shows what package time shows, until a fault makes it jump: an operator that decides by the
// clock should read this one in its simulations.
func (p *Process) Clock() clock.PassiveClock {
	p.world.clockUsed()
	return processClock{p}
}

type processClock struct{ p *Process }

func (c processClock) Now() time.Time                  { return time.Now().Add(c.p.clockSkew()) }
func (c processClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (p *Process) clockSkew() time.Duration {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	return p.skew
}

// External returns the connection to an external system of the workload. It panics when the workload has none of that name.
func (p *Process) External(name string) *ExternalClient {
	s, ok := p.world.externals[name]
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
	Owner   types.UID // the UID of the object for which it is done, if it mutates and is known: for the oracles

	latency time.Duration
}

func (c Call) String() string {
	s := c.System + " " + c.Verb
	if c.What != "" {
		s += " " + c.What
	}
	return s
}

// Call makes a call of a fake that the user has written visible to the simulator: faults can come before it, after it and instead of it.
// do has the effect, at once; it must not wait and not use the world. Call returns do's error, or that of a fault.
func (p *Process) Call(ctx context.Context, call Call, do func() error) error {
	a := p.world.park(&parked{process: p, ctx: ctx, kind: parkedCall, call: &call, do: do, key: call.String()})
	if a.panics {
		panicIfReconciling()
		return errCrashed
	}
	return a.err
}

// HTTP returns a transport to a fake of an external system that is written as an http.Handler. Each request is a [Call] whose verb is the
// method and that mutates unless the method is GET, HEAD or OPTIONS. owner tells for which object a request is made, and may be nil.
func (p *Process) HTTP(system string, handler http.Handler, owner func(*http.Request) types.UID) http.RoundTripper {
	return httpExternal{p, system, handler, owner}
}

// injectedPanic is the value of panics that faults cause in the operator.
const injectedPanic = "sim: injected panic"
