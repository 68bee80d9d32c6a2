// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// A boundary is between an operator and the API server: it takes the requests of the operator, and the
// events of its watches, to the injector.
type boundary struct {
	world *world
	trace *trace
	crash func() // kills the process; returns at once
	spent func() // is called when the operator has made more requests than it may; returns at once
	awake func() // is called for each request that the process has not made before
	// changes returns how often objects of a kind have changed.
	changes func(kind string) int
	version func() uint64 // the resource version of the last change
	calm    *calm         // of the operator

	// What has the turn uses what follows.
	down     bool            // the process is dead: it reaches nothing more
	asked    map[string]bool // requests since the process was started
	watched  map[string]bool // watches of the processes before it, in this run or the one without faults
	requests int
	catalog  *inject.Catalog // of the places of a run without faults; nil in others
	names    []string        // of the requests at the places, as plans are spread over them
	read     map[string]bool
	repeated []bool             // of the places: a read of what was read before, with nothing changed since
	open     map[*watching]bool // the watches of the process
	most     int                // watches that the process has had open at the same time
	starts   int                // of processes, but for the first one
	lags     map[string]*lag    // by kind
	expired  map[string]bool    // watches that can't continue where they were, by their selections
}

// newBoundary returns the boundary of a run.
func newBoundary(w *world, t *trace) *boundary {
	return &boundary{
		world: w, trace: t, calm: newCalm(w.later.clock, w.later.quiet), asked: map[string]bool{}, watched: map[string]bool{}, read: map[string]bool{},
		open: map[*watching]bool{}, lags: map[string]*lag{}, expired: map[string]bool{},
	}
}

// watchVerb is the beginning of a request of boundary.asked that is a watch.
const watchVerb = "watch "

// operatorActor is the actor of what the operator asks for.
const operatorActor = "operator"

// wrap returns a handler that is between clients and next.
func (b *boundary) wrap(next memory.Handler) memory.Handler {
	return func(w http.ResponseWriter, r *http.Request, request *apiserver.Request) {
		end := b.begin(request)
		defer end()
		var answer *inject.Answer
		b.world.do(func() { answer = b.answer(request) })
		switch {
		case answer == nil && watched(request):
			b.watch(w, r, next, request)
		case answer == nil:
			next(w, r, request)
		case answer.Err != nil:
			panic(http.ErrAbortHandler)
		default:
			answer.Response.Send(w, r)
		}
	}
}

// begin notes a request that is not beside the work of the operator, as the renewal of a Lease, an Event and
// a question for the kinds that there are, and returns what ends it. A watch is not under way when it is
// open.
func (b *boundary) begin(r *apiserver.Request) (end func()) {
	if r.Resource.Resource == "" || cluster.Ignored(r.Resource) {
		return func() {}
	}
	b.calm.begin()
	end = sync.OnceFunc(b.calm.end)
	if r.Verb == "watch" {
		end()
	}
	return end
}

// answer answers a request, or returns nil if it is none that counts: the server answers those.
func (b *boundary) answer(r *apiserver.Request) *inject.Answer {
	if b.down {
		return &inject.Answer{Err: inject.ErrCrashed}
	}
	if what := r.Verb + " " + r.Method + " " + r.Path; !b.asked[what] {
		b.asked[what] = true
		b.awake()
	}
	if r.Verb == "list" {
		b.unexpire(r)
	}
	r.Actor = operatorActor
	switch {
	case cluster.Ignored(r.Resource) && r.Resource.Resource == "events" && r.Verb == "create":
		b.world.judge.Event(r)
	case isReview(r):
	case !cluster.IsWrite(r) && !cluster.IsRead(r):
	case !b.world.judge.Request():
		b.spent()
		return &inject.Answer{Err: inject.ErrCrashed}
	default:
		return b.inject(r)
	}
	return nil
}

// isReview reports whether a request asks who may do something: it stores nothing, and does not
// count.
func isReview(r *apiserver.Request) bool {
	return r.Resource.Group == "authorization.k8s.io" || r.Resource.Group == "authentication.k8s.io"
}

// inject takes a write or a read to the faults.
func (b *boundary) inject(r *apiserver.Request) *inject.Answer {
	b.requests++
	name := strings.TrimSpace(r.Verb + " " + r.Resource.GroupResource().String() + " " + r.Subresource)
	if cluster.IsWrite(r) {
		b.place(name, false)
		return b.world.injector.Write(&inject.Write{Actor: operatorActor, Process: victim{boundary: b}, Request: r})
	}
	what := fmt.Sprint(b.world.cluster.Changes(), " ", r.Verb, " ", r.Path)
	b.place(name, b.read[what])
	b.read[what] = true
	return b.world.injector.Read(&inject.Read{Actor: operatorActor, Request: r})
}

// place notes what the catalog does not know of the place that comes next.
func (b *boundary) place(name string, repeated bool) {
	b.names, b.repeated = append(b.names, name), append(b.repeated, repeated)
}

// A victim is the process as faults know it. In real time, they can only kill it: it has no context to
// cancel and no clock of its own, and those that do something else are not among the played ones.
type victim struct {
	inject.Process // nil
	boundary       *boundary
}

// Crash kills the process at once.
func (v victim) Crash() {
	v.boundary.down = true
	v.boundary.crash()
}

// deletion lets the faults strike that come before a user deletes something.
func (b *boundary) deletion() {
	b.world.do(func() {
		b.place("deletion", false)
		b.world.injector.Deletion()
	})
}

// checkpoint reports whether the plan wants to prove that the operator is idle.
func (b *boundary) checkpoint(n int) (prove bool) {
	b.world.do(func() { prove = b.world.injector.Checkpoint(n) })
	return prove
}

// suspend keeps faults from striking, or lets them strike again: while it is proved that an idle
// operator stays idle, a fault would be a reason not to.
func (b *boundary) suspend(suspended bool) {
	b.world.do(func() {
		if suspended {
			b.world.injector.Suspend()
		} else {
			b.world.injector.Resume()
		}
	})
}

// setDown lets no request through, or all of a process that is started.
func (b *boundary) setDown(down bool) {
	b.world.do(func() {
		b.remember()
		b.down, b.asked = down, map[string]bool{}
		clear(b.lags)
		clear(b.expired)
		b.open, b.most = map[*watching]bool{}, 0 // those of a dead process have ended, also if their handlers have not
		if !down {
			b.starts++
		}
	})
}

// disturbed returns how often a fault has struck or a process was started again, and whether the
// process has all watches open that it has had.
func (b *boundary) disturbed() (times int, watches bool) {
	b.world.do(func() {
		times, watches = b.starts, len(b.open) >= b.most
		for _, fired := range b.world.injector.Fired() {
			if fired {
				times++
			}
		}
	})
	return times, watches
}

// hasAsked reports whether the process has asked for all of this.
func (b *boundary) hasAsked(all map[string]bool) (has bool) {
	b.world.do(func() {
		has = true
		for what := range all {
			has = has && b.asked[what]
		}
	})
	return has
}

// begun remembers and returns what the process has watched so far, which those after it are
// expected to watch, too, and returns what it has asked for.
func (b *boundary) begun() (watched, asked map[string]bool) {
	b.world.do(func() {
		b.remember()
		watched, asked = maps.Clone(b.watched), maps.Clone(b.asked)
	})
	return watched, asked
}

func (b *boundary) remember() {
	for what := range b.asked {
		if strings.HasPrefix(what, watchVerb) {
			b.watched[what] = true
		}
	}
}

// works reports whether the process has asked for anything since it was started, and caughtUp
// whether it watches what those before it have watched.
func (b *boundary) works() (works, caughtUp bool) {
	b.world.do(func() {
		works, caughtUp = len(b.asked) > 0, true
		for what := range b.watched {
			caughtUp = caughtUp && b.asked[what]
		}
	})
	return works, caughtUp
}

// seen returns the places of a run without faults by the names of their requests.
func (b *boundary) seen() (places []fault.Place, names []string, requests int, fired []bool) {
	b.world.do(func() {
		places, names, requests, fired = b.catalog.All(), append(names, b.names...), b.requests, b.world.injector.Fired()
	})
	return places, names, requests, fired
}
