// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// oracles are those of virtual time that see what a process asks for and changes. What they see
// comes in any goroutine, and they look at one thing at a time.
type oracles struct {
	writing sync.Mutex // held during a write of the operator, so that what it changes is known
	mu      sync.Mutex // guards judge
	judge   *judge.Judge
	spent   func() // called when the operator has made more requests than it may; returns at once
}

// lagTime is how long a change of one object may be unknown to a reconcile of another one that
// runs.
const lagTime = time.Second

// mostRequests is how many requests a run may need that is the first one.
const mostRequests = 5_000

// newOracles returns the oracles of a run.
func (o *Options) newOracles(p fault.Plan, reference *judge.Reference, t *trace, c *clock) *oracles {
	without := map[oracle.Name]string{}
	if o.Transitions != nil {
		without[oracle.EndsWell] = "an operator may fail where a change is a mistake"
	}
	return &oracles{judge: judge.New(judge.Options{
		Plan: p, Reference: reference, Without: without, Declare: "--by-design", Now: c.time,
		Pace: judge.Pace{
			Proof: o.Settle, Clock: o.Quiet, Poll: o.Quiet / 2, Claim: o.Quiet, Lag: lagTime, Stale: o.Settle, Leaving: o.Settle, Requests: mostRequests,
		},
		Noticed: func(name oracle.Name, text string) int {
			entry := len(t.all())
			t.add("sim", "oracle", string(name)+": "+text)
			return entry
		},
	})}
}

// see calls the oracles.
func (o *oracles) see(do func(*judge.Judge)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	do(o.judge)
}

// changed shows them a change of the cluster.
func (o *oracles) changed(c apiserver.Change) {
	if trial.IsOperator(c.Actor) {
		c.Actor = "operator" // it is the name of a client
	}
	o.see(func(j *judge.Judge) { j.Changed(c) })
}

// serve lets a request be answered, and shows them a write and its answer. It returns the code.
func (o *oracles) serve(w http.ResponseWriter, r *http.Request, next memory.Handler, request *apiserver.Request) int {
	answer := &answering{ResponseWriter: w, response: apiserver.Response{Code: http.StatusOK}}
	if pointOf(request) != fault.AtWrite {
		next(answer, r, request)
		return answer.response.Code
	}
	o.writing.Lock()
	defer o.writing.Unlock()
	o.see(func(j *judge.Judge) { j.BeforeWrite(request) })
	next(answer, r, request)
	answer.response.Body = answer.body.Bytes()
	o.see(func(j *judge.Judge) { j.AfterWrite(request, &answer.response) })
	return answer.response.Code
}

// mayAsk counts a request of the operator, and reports whether it may make it.
func (o *oracles) mayAsk() bool {
	may := true
	o.see(func(j *judge.Judge) { may = j.Request() })
	if !may {
		o.spent()
	}
	return may
}

// answering passes an answer on and keeps it if it is an error.
type answering struct {
	http.ResponseWriter
	response apiserver.Response
	body     bytes.Buffer
}

func (a *answering) WriteHeader(code int) {
	a.response.Code = code
	a.ResponseWriter.WriteHeader(code)
}

func (a *answering) Write(p []byte) (int, error) {
	if a.response.Code >= 300 {
		a.body.Write(p)
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }
