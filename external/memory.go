// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"hash/maphash"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/answer"
)

// A memory is what this process knows of creations, and what the annotations of an object may not
// have: because they could not be written, or another client has removed them.
type memory struct {
	process string // another text in each process
	seed    maphash.Seed

	mu      sync.Mutex // for all below
	all     map[types.UID]attempt
	created time.Time // when Create has last succeeded, for any object
	probe   types.UID // of the object that tries, while all are refused
}

// An attempt is the last creation for an object.
type attempt struct {
	record  record            // with which Create was called, or that another process has begun
	id      string            // of the resource; empty if it is not known
	seen    bool              // the resource of the last call of Create was observed
	later   bool              // the system has asked to call Create later
	once    map[string][]byte // what Create has returned: the cache may show the Secret without it
	fresh   *observed         // what was seen after a change, for the reconcile that its writes trigger
	proven  string            // the id of which the system, or the claim, has said that it is of the object
	from    string            // the owner that a system keeps, of which the resource was adopted
	deleted bool              // Delete was called, and has returned
	open    bool              // a call may have created the resource, and has not returned its id
	last    time.Time         // when Create has returned, or the record of another process was first seen
	// published is the hash of the connection Secret and of the details that it has; zero if it is not known.
	published uint64
	refusal
}

// observed is what was seen of a resource.
type observed struct {
	Observation
	at time.Time
}

// A refusal is what the system has answered to Create, several times in a row.
type refusal struct {
	err        error
	generation int64 // of the object
	times      int
	at         time.Time     // the last time
	delay      time.Duration // until Create is called again
	patient    time.Duration // the same, while another object tries for all
}

// newMemory returns an empty memory. Nothing else shares it, and nothing survives the process.
func newMemory() *memory {
	return &memory{process: string(uuid.NewUUID()), seed: maphash.MakeSeed(), all: make(map[types.UID]attempt)}
}

// change changes what is known of an object.
func (m *memory) change(uid types.UID, change func(*attempt)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.all[uid]
	change(&a)
	m.all[uid] = a
}

// get returns what is known of an object.
func (m *memory) get(uid types.UID) attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[uid]
}

// hashOf returns a number for the version of a Secret and the details that are published to it.
func (m *memory) hashOf(secret client.Object, details Details) uint64 {
	sum := maphash.Comparable(m.seed, [3]string{secret.GetName(), string(secret.GetUID()), secret.GetResourceVersion()})
	for of, all := range []map[string][]byte{details.Values, details.Once} {
		for detail, value := range all { // in any order
			sum += maphash.Comparable(m.seed, entry{of, detail, maphash.Bytes(m.seed, value)})
		}
	}
	return sum
}

// An entry is a detail to be hashed.
type entry struct {
	of     int // whether its value is known each time
	detail string
	value  uint64
}

// takeFresh returns what was seen of a resource after its last change, once.
func (m *memory) takeFresh(uid types.UID) *observed {
	fresh := m.get(uid).fresh
	if fresh != nil {
		m.change(uid, func(a *attempt) { a.fresh = nil })
	}
	return fresh
}

// see notes what the annotations of an object say. A record that is older than what is known is that
// of a stale cache: to take it would be to forget a creation.
func (m *memory) see(uid types.UID, id string, r record) {
	m.change(uid, func(a *attempt) {
		switch {
		case !r.at.IsZero() && r.at.Before(a.record.at):
		case id != "":
			a.id, a.record, a.open = id, r, false
		case r.step == begun && !a.record.same(r):
			*a = attempt{record: r, proven: a.proven, from: a.from, open: r.process != m.process, last: time.Now(), refusal: a.refusal}
		}
	})
}

// last returns the record of the last creation for an object of which this process knows what has
// become, an empty one if there is none.
func (m *memory) last(uid types.UID) record {
	return m.get(uid).record
}

// called notes that Create is being called. Before it, nothing was created with a record of this
// process. What it returns notes how the call has ended; classify knows how the engine backs off.
func (m *memory) called(uid types.UID, generation int64, r record, classify func(error) failure.Classification) (ended func(id string, err error)) {
	before, seen := false, false
	m.change(uid, func(a *attempt) {
		seen = a.seen
		if !a.record.same(r) {
			*a = attempt{record: r, proven: a.proven, from: a.from, refusal: a.refusal}
		}
		before, a.open, a.later = a.open, true, false // also after a panic
		a.seen = false                                // the one that was seen is gone, or Create would not be called
	})
	return func(id string, err error) {
		m.change(uid, func(a *attempt) {
			a.last = time.Now()
			_, slower := throttled(err)
			switch {
			case slower:
				a.open, a.later, a.seen = before, true, seen
			case err == nil:
				a.id, a.open, a.refusal = id, false, refusal{}
				m.created = a.last
			case answer.IsRefused(err):
				a.open, a.seen = before, seen // what an earlier call has done is as unknown as it was
				a.refusal = a.again(err, generation, classify(err).Backoff)
			}
		})
	}
}

// of returns what is known of a creation that was begun with a record: whether Create may have
// created a resource, and its id if it has returned one.
func (m *memory) of(uid types.UID, r record) (a attempt, maybe bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.all[uid]
	if ok && a.record.same(r) {
		return a, a.open || a.id != ""
	}
	return attempt{refusal: a.refusal}, r.process != m.process
}

// restore returns what the annotations of an object should say: the id of its resource, or that one
// may be being created. It reports whether that is known.
func (m *memory) restore(uid types.UID) (id string, r record, ok bool) {
	a := m.get(uid)
	switch {
	case a.id == "":
		return "", a.record, a.open
	case a.record.step == created:
		return a.id, a.record, true
	}
	return a.id, record{step: created, at: a.last, token: a.record.token, uid: a.record.uid}, true
}

// holds returns why Create can't be called for an object yet; see refusal.holds.
func (m *memory) holds(uid types.UID, generation int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.all[uid].refusal
	if _, there := m.all[m.probe]; !there || m.all[m.probe].times <= refusalsInARow {
		m.probe = uid
	}
	if m.probe == uid {
		r.patient = r.delay
	}
	return r.holds(generation, m.created)
}

// forget drops what is known of an object.
func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, uid)
}

// again returns the refusal with one more answer. Each attempt begins with a write of the intent,
// and each answer ends with another one: the events of these writes would bring the next attempt at
// once, without the backoff of the failure.
func (r refusal) again(err error, generation int64, backoff failure.Backoff) refusal {
	if r.generation != generation {
		r.times = 0
	}
	r.times++
	delay := backoff.Delay(r.times)
	patient := delay
	if more := r.times - refusalsInARow; more > 0 {
		patient = max(delay, min(delay<<min(more, 16), mostPatient))
	}
	return refusal{err: err, generation: generation, times: r.times, at: time.Now(), delay: delay, patient: patient}
}

const (
	refusalsInARow = 8         // after which attempts, of which each costs two writes, become fewer
	mostPatient    = time.Hour // between two attempts of an object, while another one tries for all
)

// holds returns the error of the last attempt, if it is too early for the next one, with the time to
// try again. Created is when the system has last created something: then it does not refuse all. A
// change of the spec ends the wait.
func (r refusal) holds(generation int64, created time.Time) error {
	wait := time.Until(r.at.Add(r.delay))
	if r.generation != generation || wait <= 0 && (created.After(r.at) || time.Since(r.at) >= r.patient) {
		return nil
	}
	if wait <= 0 {
		wait = min(r.delay, time.Until(r.at.Add(r.patient)))
	}
	return failure.Mark(r.err, failure.WithRetryAfter(wait))
}
