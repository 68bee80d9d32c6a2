// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// A boundary is between an operator and the API server. It counts the writes and reads of the
// operator, and faults strike there.
type boundary struct {
	plan     fault.Plan
	trace    *trace
	oracles  *oracles
	describe func(*apiserver.Request) *fault.Write // what decides which faults can strike at a write
	withheld func() []string                       // what can be withheld
	other    func(fault.Fault, *apiserver.Request)
	crash    func()     // kills the process; returns at once
	awake    func()     // is called for each request that the process has not made before
	state    func() int // how often the cluster has changed
	// changes returns how often objects of a kind have changed.
	changes func(kind string) int
	version func() uint64 // the resource version of the last change

	mu        sync.Mutex      // guards what follows
	down      bool            // the process is dead: it reaches nothing more
	suspended bool            // no fault strikes
	asked     map[string]bool // requests since the process was started
	watched   map[string]bool // watches of the processes before it, in this run or the one without faults
	writes    int
	reads     int
	deletions int
	requests  int
	fired     []bool
	places    []fault.Place
	names     []string // of the requests, as plans are spread over them
	read      map[string]bool
	repeated  []bool          // of the places: a read of what was read before, with nothing changed since
	events    map[string]int  // by kind
	lags      map[string]*lag // by kind
	expired   map[string]bool // watches that can't continue where they were, by their selections
	hidden    time.Time       // until when an event is missed or late
}

// newBoundary returns the boundary of a run of a plan.
func newBoundary(p fault.Plan, t *trace, o *oracles) *boundary {
	return &boundary{
		plan: p, trace: t, oracles: o, withheld: func() []string { return nil }, fired: make([]bool, len(p.Faults)), asked: map[string]bool{}, watched: map[string]bool{}, read: map[string]bool{},
		events: map[string]int{}, lags: map[string]*lag{}, expired: map[string]bool{},
	}
}

// watchVerb is the beginning of a request of boundary.asked that is a watch.
const watchVerb = "watch "

// wrap returns a handler that is between clients and next.
func (b *boundary) wrap(next memory.Handler) memory.Handler {
	return func(w http.ResponseWriter, r *http.Request, request *apiserver.Request) {
		if cluster.Ignored(request.Resource) && request.Resource.Resource == "events" && request.Verb == "create" {
			b.oracles.see(func(j *judge.Judge) { j.Event(request) })
		}
		if request.Verb == "list" {
			b.unexpire(request)
		}
		point := pointOf(request)
		number, strikes, ok := b.arrive(point, request)
		switch {
		case !ok || point != 0 && !b.oracles.mayAsk():
			panic(http.ErrAbortHandler)
		case watched(request):
			b.watch(w, r, next, request)
		default:
			b.strike(w, r, next, point, number, request, strikes)
		}
	}
}

// pointOf returns whether a request is a write or a read that counts, and 0 for any other.
func pointOf(r *apiserver.Request) fault.Point {
	switch group := r.Resource.Group; {
	case group == "authorization.k8s.io" || group == "authentication.k8s.io": // they store nothing
		return 0
	case cluster.IsWrite(r):
		return fault.AtWrite
	case cluster.IsRead(r):
		return fault.AtRead
	}
	return 0
}

// arrive counts a request and returns the faults that strike at it. ok is false if the process that
// has sent it is dead.
func (b *boundary) arrive(point fault.Point, r *apiserver.Request) (number int, strikes []fault.Fault, ok bool) {
	var write *fault.Write
	if point == fault.AtWrite {
		write = b.describe(r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return 0, nil, false
	}
	if what := r.Verb + " " + r.Method + " " + r.Path; !b.asked[what] {
		b.asked[what] = true
		b.awake()
	}
	place, repeated := fault.Place{Point: point}, false
	switch point {
	case fault.AtWrite:
		b.writes++
		place.At = b.writes
		place.Write = write
		place.Withholdable = b.withheld()
	case fault.AtRead:
		b.reads++
		place.At = b.reads
		what := fmt.Sprint(b.state(), " ", r.Verb, " ", r.Path)
		repeated, b.read[what] = b.read[what], true
	default:
		return 0, nil, true
	}
	b.requests++
	b.places, b.repeated = append(b.places, place), append(b.repeated, repeated)
	b.names = append(b.names, strings.TrimSpace(r.Verb+" "+r.Resource.GroupResource().String()+" "+r.Subresource))
	return place.At, b.due(&place), true
}

// due returns the faults that strike at a request.
func (b *boundary) due(place *fault.Place) (strikes []fault.Fault) {
	if b.suspended {
		return nil
	}
	var due []int
	for i, f := range b.plan.Faults {
		if f.Kind.Point() == place.Point && f.At == place.At && meets(place, f) {
			due = append(due, i)
		}
	}
	for _, i := range striking(b.plan, due) {
		f := b.plan.Faults[i]
		b.fired[i] = true
		b.down = b.down || kills(f.Kind)
		strikes = append(strikes, f)
	}
	return strikes
}

// meets reports whether a request is one at which a fault of another client can strike. In real
// time, the requests of two runs need not have the same order.
func meets(p *fault.Place, f fault.Fault) bool {
	switch f.Kind {
	case fault.DeleteBeforeWrite, fault.TouchBeforeWrite, fault.OccupyName, fault.OccupyNameByController, fault.LeaveOrphan, fault.Recreate,
		fault.DeleteAndCreate, fault.Withhold, fault.WipeStatus:
		return slices.Contains(p.Faults(), f)
	}
	return true
}

func kills(k fault.Kind) bool { return k == fault.CrashBeforeWrite || k == fault.CrashAfterWrite }

// struck records that a fault which strikes at no request has struck.
func (b *boundary) struck(kind fault.Kind, at int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, f := range b.plan.Faults {
		if f.Kind == kind && f.At == at {
			b.fired[i] = true
			return true
		}
	}
	return false
}

// deletes notes that a user is about to delete something, and returns the faults that strike then.
func (b *boundary) deletes() (strikes []fault.Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deletions++
	b.places, b.repeated = append(b.places, fault.Place{Point: fault.AtDeletion, At: b.deletions, Withholdable: b.withheld()}), append(b.repeated, false)
	b.names = append(b.names, "deletion")
	for i, f := range b.plan.Faults {
		if f.Kind == fault.WithholdAtDeletion && f.At == b.deletions {
			b.fired[i] = true
			strikes = append(strikes, f)
		}
	}
	return strikes
}

// suspend keeps faults from striking, or lets them strike again: while it is proved that an idle
// operator stays idle, a fault would be a reason not to.
func (b *boundary) suspend(suspended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.suspended = suspended
}

// setDown lets no request through, or all of a process that is started.
func (b *boundary) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remember()
	b.down, b.asked = down, map[string]bool{}
	clear(b.lags)
	clear(b.expired)
	b.hidden = time.Time{}
}

// watches remembers and returns what the process has watched so far, which those after it are
// expected to watch, too.
func (b *boundary) watches() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remember()
	return maps.Clone(b.watched)
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
	b.mu.Lock()
	defer b.mu.Unlock()
	for what := range b.watched {
		if !b.asked[what] {
			return len(b.asked) > 0, false
		}
	}
	return len(b.asked) > 0, true
}

// serve answers a request and records it.
func (b *boundary) serve(w http.ResponseWriter, r *http.Request, next memory.Handler, point fault.Point, number int, request *apiserver.Request) {
	b.note(point, number, request, b.oracles.serve(w, r, next, request))
}

func (b *boundary) note(point fault.Point, number int, r *apiserver.Request, code int) {
	switch point {
	case fault.AtWrite:
		b.trace.add("operator", fmt.Sprint("write ", number), fmt.Sprintf("%s -> %d", cluster.Describe(r), code))
	case fault.AtRead:
		b.trace.add("operator", fmt.Sprint("read ", number), fmt.Sprintf("%s -> %d", cluster.Describe(r), code))
	}
}

// strike answers a request as faults want it.
func (b *boundary) strike(w http.ResponseWriter, r *http.Request, next memory.Handler, point fault.Point, number int, request *apiserver.Request, faults []fault.Fault) {
	for _, f := range faults {
		b.trace.add("sim", "fault", f.String())
	}
	last := fault.Fault{} // that says how the request is answered
	for _, f := range faults {
		switch f.Kind {
		case fault.CrashBeforeWrite:
			b.crash()
			panic(http.ErrAbortHandler)
		case fault.RefuseWrite:
			b.note(point, number, request, send(w, inject.RefusalOfWrite(f.How, request)))
			return
		case fault.RefuseRead:
			b.note(point, number, request, send(w, inject.Refusal(f.How, request)))
			return
		case fault.CrashAfterWrite:
			last = f
		case fault.LoseWriteAnswer:
			if last.Kind != fault.CrashAfterWrite {
				last = f
			}
		default:
			if !comesAfter(f.Kind) {
				b.other(f, request)
			}
		}
	}
	answer := w
	if last.Kind != 0 {
		answer = &kept{header: http.Header{}}
	}
	b.serve(answer, r, next, point, number, request)
	for _, f := range faults {
		if comesAfter(f.Kind) && f.Kind != fault.CrashAfterWrite && f.Kind != fault.LoseWriteAnswer {
			b.other(f, request)
		}
	}
	switch {
	case last.Kind == fault.CrashAfterWrite:
		b.crash()
		panic(http.ErrAbortHandler)
	case last.How == "reset":
		panic(http.ErrAbortHandler)
	case last.Kind != 0:
		send(w, inject.Refusal(last.How, request))
	}
}

// send sends an answer that is not that of the server, and returns its code.
func send(w http.ResponseWriter, response *apiserver.Response) int {
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.Code)
	_, _ = w.Write(response.Body) //nolint:errcheck // the client is gone
	return response.Code
}

// kept is an answer that is not sent.
type kept struct{ header http.Header }

func (k *kept) Header() http.Header         { return k.header }
func (k *kept) Write(p []byte) (int, error) { return len(p), nil }
func (k *kept) WriteHeader(int)             {}

// seen returns the places of a run by the names of their requests.
func (b *boundary) seen() (places []fault.Place, names []string, requests int, fired []bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(places, b.places...), append(names, b.names...), b.requests, append(fired, b.fired...)
}
