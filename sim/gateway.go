// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/schedule"
	"github.com/ctrlkit/ctrlkit/internal/sim/writes"
)

// latency is how long the API server takes for a request, in virtual time.
const latency = time.Millisecond

// gateway is where everything passes that a process asks of the outside. It makes each request and
// call wait for its turn, and takes it to the injector then.
type gateway struct {
	schedule *schedule.Schedule
	cluster  *cluster.Cluster
	injector *inject.Injector
	watches  *watches
	judge    *judge.Judge
	writes   *writes.Log

	takeOver  func() // is called before each request and call
	victim    func(*Process) inject.Process
	exhausted func() // is called when the operator may make no more requests

	requests int // without Kubernetes Events
}

// turn is a request or call that waits, as faults see it.
type turn struct {
	schedule *schedule.Schedule
	*schedule.Turn
}

func (t turn) Hold(until time.Time)  { t.schedule.Hold(t.Turn, until) }
func (t turn) Pause(d time.Duration) { t.schedule.Pause(t.Turn, d) }

// request waits for the answer to a request. body is what a watch is delivered to; it is nil for
// other requests.
func (g *gateway) request(ctx context.Context, p *Process, r *apiserver.Request, body *watchBody) (inject.Answer, error) {
	return g.wait(ctx, p, orderKey(r), 0, func(t turn) *inject.Answer { return g.serve(p, r, body, t) })
}

// serve takes a request to the server, past the faults.
func (g *gateway) serve(p *Process, r *apiserver.Request, body *watchBody, t turn) *inject.Answer {
	actor := p.owner.Name
	switch {
	case r.Verb == "watch":
		return &inject.Answer{Response: g.watches.begin(p, body, r)}
	case p.user:
		what := "read"
		if cluster.IsWrite(r) {
			what = "write"
		}
		return &inject.Answer{Response: g.cluster.Execute(r, what)}
	case cluster.IsWrite(r):
		putBack := g.writes.Arrive(r)
		answer := g.injector.Write(&inject.Write{Actor: actor, Process: g.victim(p), Turn: t, Request: r})
		if answer == nil {
			putBack()
		}
		return answer
	case cluster.IsRead(r):
		return g.injector.Read(&inject.Read{Actor: actor, Request: r})
	}
	return &inject.Answer{Response: g.cluster.Execute(r, "request")}
}

// call waits until a call of an external system was made, which takes some time.
func (g *gateway) call(ctx context.Context, p *Process, c external.Call, takes time.Duration, do func() error) (inject.Answer, error) {
	return g.wait(ctx, p, c.String(), takes, func(t turn) *inject.Answer {
		putBack := g.writes.ArriveCall(c)
		answer := g.injector.Call(&inject.Call{Actor: p.owner.Name, Process: g.victim(p), Turn: t, Call: c, Do: do})
		if answer == nil {
			putBack()
		}
		g.writes.End(0) // also when the call has failed
		return answer
	})
}

// wait waits for the turn of a process, which takes some time more than a request, and for its answer.
func (g *gateway) wait(ctx context.Context, p *Process, key string, takes time.Duration, do func(turn) *inject.Answer) (inject.Answer, error) {
	var answer inject.Answer
	err := g.schedule.Wait(&schedule.Turn{
		Ctx: ctx, Owner: p.owner, Key: key, Takes: latency,
		Do: func(t *schedule.Turn) {
			if takes > 0 && !t.Held() {
				g.schedule.Hold(t, time.Now().Add(takes))
				return
			}
			g.finish(t, &answer, func() *inject.Answer { return do(turn{g.schedule, t}) })
		},
	})
	if err != nil {
		return inject.Answer{}, err // the driver may still write the answer of a turn that has given up
	}
	return answer, nil
}

// finish ends a turn with an answer, unless it was put back.
func (g *gateway) finish(t *schedule.Turn, into *inject.Answer, answer func() *inject.Answer) {
	g.takeOver()
	g.requests++ // again for a turn that a fault has put back
	if !g.judge.Request() {
		g.exhausted()
		t.Finish(errAborted)
		return
	}
	if a := answer(); a != nil {
		*into = *a
		t.Finish(nil)
	}
}

// recorded is a judge before which the log of writes sees each write and call.
type recorded struct {
	judge *judge.Judge
	log   *writes.Log
}

func (r recorded) BeforeWrite(request *apiserver.Request) {
	r.log.BeginWrite(request)
	r.judge.BeforeWrite(request)
}

func (r recorded) AfterWrite(request *apiserver.Request, response *apiserver.Response) (idle bool) {
	idle = r.judge.AfterWrite(request, response)
	r.log.End(response.Code)
	return idle
}

func (r recorded) BeforeCall(c external.Call) {
	r.log.BeginCall(c)
	r.judge.BeforeCall(c)
}

func (r recorded) AfterCall(c external.Call) {
	r.judge.AfterCall(c)
	r.log.End(0)
}

// background are the controllers of the cluster that the server runs: the garbage collector and
// similar.
type background struct {
	server *apiserver.Server
	active func()
	at     time.Time // when they run; zero: there is nothing to do
}

// backgroundTime is how long the cluster's own controllers take to notice something, in virtual
// time.
const backgroundTime = 500 * time.Millisecond

func (b *background) Due() time.Time { return b.at }

func (b *background) Step() bool {
	if !b.server.Pending() {
		return false
	}
	switch now := time.Now(); {
	case b.at.IsZero():
		b.at = now.Add(backgroundTime)
		return false
	case now.Before(b.at):
		return false
	}
	worked := false
	for b.server.Work() {
		worked = true
	}
	b.at = time.Time{}
	if worked {
		b.active()
	}
	return worked
}
