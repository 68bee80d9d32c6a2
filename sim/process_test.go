// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// inProcess runs a function as an operator, the first process of it, with a plan.
func inProcess(t *testing.T, plan string, do func(ctx context.Context, p *Process)) *result {
	t.Helper()
	return play(t, Workload{
		Operator: func(ctx context.Context, p *Process) error {
			if p.owner.Name == "operator" {
				do(ctx, p)
			}
			return idleOperator(ctx, p)
		},
		Script: func(w *World) { w.Settle() },
	}, plan)
}

// A call is in the trace, has its effect once, and returns its error. Faults come before it, after
// it and instead of it.
func TestCall(t *testing.T) {
	failure := errors.New("the disk is full")
	tests := map[string]struct {
		plan    string
		answer  error
		effects int
		want    error
	}{
		"without a fault":     {"", nil, 1, nil},
		"with an error":       {"", failure, 1, failure},
		"a crash before it":   {"crash before call 1", nil, 0, context.Canceled},
		"a crash after it":    {"crash after call 1", nil, 1, context.Canceled},
		"the answer is lost":  {"lose the answer of call 1", nil, 1, ErrLost},
		"it fails":            {"fail call 1", nil, 0, ErrUnavailable},
		"it is throttled":     {"throttle call 1", nil, 0, ErrThrottled},
		"a later call is hit": {"fail call 2", nil, 1, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			effects := 0
			var got error
			r := inProcess(t, test.plan, func(ctx context.Context, p *Process) {
				got = p.Call(ctx, Call{System: "disk", Verb: "write", What: "a block", Mutates: true}, func() error {
					effects++
					return test.answer
				})
			})
			if effects != test.effects || !errors.Is(got, test.want) {
				t.Errorf("%d effects and the error %v, want %d and %v", effects, got, test.effects, test.want)
			}
			if text := r.trace.String(); test.plan == "" && !strings.Contains(text, "operator           call 1     disk write a block -> ") {
				t.Errorf("the call is not in the trace:\n%s", text)
			}
		})
	}
}

// A caller that gives up gets the error of its context.
func TestACallThatHangs(t *testing.T) {
	inProcess(t, "hang call 1", func(ctx context.Context, p *Process) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		begin := time.Now()
		err := p.Call(ctx, Call{System: "disk", Verb: "write"}, func() error { return nil })
		if d := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || d != 30*time.Second {
			t.Errorf("got %v after %s", err, d)
		}
	})
}

// A fake that panics is a mistake of the test, and the run continues.
func TestPanicOfAFake(t *testing.T) {
	r := inProcess(t, "", func(ctx context.Context, p *Process) {
		c := http.Client{Transport: p.HTTP("kettle", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("no water") }), nil)}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://kettle.invalid/pot", nil)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := c.Do(request); err == nil || !strings.Contains(err.Error(), "the fake of kettle panicked at GET http://kettle.invalid/pot: no water") {
			t.Errorf("got the error %v", err)
		}
	})
	if !slices.ContainsFunc(r.violations, func(v oracle.Violation) bool { return v.Oracle == oracle.ScriptRuns }) {
		t.Errorf("got %v, want the panic", r.violations)
	}
}

// A fake that is an http.Handler is called like a system: the method says whether it mutates, and
// faults are errors of the transport. As on a server, a request has a body, a target and a host.
func TestHTTP(t *testing.T) {
	var served []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served = append(served, r.Method+" "+r.URL.Path)
		if body, err := io.ReadAll(r.Body); err != nil || len(body) > 0 || r.RequestURI != "/pot?size=1" || r.Host != "kettle.invalid" {
			t.Errorf("the fake gets the body %q, error %v, %q of %q", body, err, r.RequestURI, r.Host)
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	})
	r := inProcess(t, "fail call 3", func(ctx context.Context, p *Process) {
		var owners []string
		owner := func(r *http.Request) types.UID {
			owners = append(owners, r.Method)
			return ""
		}
		c := http.Client{Transport: p.HTTP("kettle", handler, owner)}
		for i, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			request, err := http.NewRequestWithContext(ctx, method, "http://kettle.invalid/pot?size=1", nil)
			if err != nil {
				t.Error(err)
				return
			}
			response, err := c.Do(request)
			if i == 2 {
				if !errors.Is(err, ErrUnavailable) {
					t.Errorf("the third one gets %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			body, err := io.ReadAll(response.Body)
			if err != nil || string(body) != "short and stout" || response.StatusCode != http.StatusTeapot || response.Request != request {
				t.Errorf("got %d %q, %v", response.StatusCode, body, err)
			}
		}
		if got := strings.Join(owners, " "); got != "POST" {
			t.Errorf("the owner was asked for of %q, want of what mutates", got)
		}
	})
	if got := strings.Join(served, ", "); got != "GET /pot, POST /pot" {
		t.Errorf("served: %s", got)
	}
	for _, want := range []string{"kettle GET /pot?size=1 -> ok", "kettle POST /pot?size=1 -> ok"} {
		if !strings.Contains(r.trace.String(), want) {
			t.Errorf("%q is not in the trace:\n%s", want, r.trace)
		}
	}
}

// The clock of a process is package time's, until a fault makes it jump.
func TestClock(t *testing.T) {
	inProcess(t, "jump the clock by 1h0m0s at write 1", func(ctx context.Context, p *Process) {
		clock := p.Clock()
		if off := clock.Since(time.Now()); off != 0 {
			t.Errorf("the clock is %s off", off)
		}
		c, err := client.New(p.Config(), client.Options{})
		if err == nil {
			err = c.Create(ctx, configMap("x"))
		}
		if err != nil {
			t.Error(err)
		}
		if off := clock.Since(time.Now()); off != time.Hour {
			t.Errorf("after the fault the clock is %s off", off)
		}
	})
}

// What a process hands out is for a simulation: nothing listens, nothing is limited, and clients
// are those of the process.
func TestWhatAProcessHandsOut(t *testing.T) {
	inProcess(t, "", func(ctx context.Context, p *Process) {
		options := p.ManagerOptions()
		if options.Scheme != p.Scheme() || options.Metrics.BindAddress != "0" || options.HealthProbeBindAddress != "0" || options.LeaderElection || !*options.Controller.SkipNameValidation {
			t.Errorf("got %+v", options)
		}
		if config := p.Config(); config.QPS != -1 || config.Host != "http://operator.sim.invalid" {
			t.Errorf("got the host %s with %v requests a second", config.Host, config.QPS)
		}
		defer func() {
			if want, got := `sim: the workload has no external system "x": list it in Workload.Externals`, recover(); got != want {
				t.Errorf("got %v, want %s", got, want)
			}
		}()
		p.External("x")
	})
}

// After a crash nothing that the process does has an effect, whatever it still tries.
func TestACrashedProcess(t *testing.T) {
	r := inProcess(t, "crash after write 1", func(ctx context.Context, p *Process) {
		c, err := client.New(p.Config(), client.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		if err := c.Create(ctx, configMap("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("the write gets %v", err)
		}
		if cause := context.Cause(ctx); !errors.Is(cause, inject.ErrCrashed) {
			t.Errorf("its context has the cause %v", cause)
		}
		ctx = context.WithoutCancel(ctx)
		if err := c.Create(ctx, configMap("y")); err == nil || !strings.Contains(err.Error(), inject.ErrCrashed.Error()) {
			t.Errorf("a write after the crash gets %v", err)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(configMap("x")), &corev1.ConfigMap{}); err == nil {
			t.Error("it reads after the crash")
		}
		if err := p.Call(ctx, Call{System: "disk"}, func() error { t.Error("an effect after the crash"); return nil }); err == nil {
			t.Error("it calls after the crash")
		}
	})
	if n := strings.Count(r.trace.String(), "-> 201"); n != 1 {
		t.Errorf("%d objects were created, want one:\n%s", n, r.trace)
	}
}

// Without a scheme and durations, a workload has those of most operators.
func TestDefaultsOfAWorkload(t *testing.T) {
	w := &Workload{}
	if w.quiet() != time.Minute || w.patience() != 6*time.Hour || !schemeOf(w).Recognizes(corev1.SchemeGroupVersion.WithKind("Pod")) {
		t.Errorf("quiet for %s, patient for %s", w.quiet(), w.patience())
	}
	w.Quiet, w.Patience = time.Second, time.Hour
	if w.quiet() != time.Second || w.patience() != time.Hour {
		t.Errorf("quiet for %s, patient for %s", w.quiet(), w.patience())
	}
	for identity, want := range map[Identity]bool{0: true, IdentityName: false, IdentityNone: false, IdentityNone + 1: true} {
		w := &Workload{Externals: []External{{Name: "buckets", Identity: identity}}}
		if _, err := newRun(w, nil, mustParse(t, "no fault")[0], nil, nil); (err != nil) != want {
			t.Errorf("identity %d: %v", identity, err)
		}
	}
}
