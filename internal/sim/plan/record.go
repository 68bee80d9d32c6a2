// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// key names an object in any version of its kind.
type key struct {
	resource        schema.GroupResource
	namespace, name string
}

// history is what happened to one object in a phase.
type history struct {
	key
	order      int // of its first change in the phase
	first      map[string]any
	last       map[string]any
	recreated  bool
	byOperator int // changes
	byUser     int
	collected  bool // the garbage collector has deleted it
	repeats    int  // changes by the operator to a state that it was in before
}

// A recorder records the changes of a cluster, by phase.
type recorder struct {
	mu       sync.Mutex // guards what follows
	phase    map[key]*history
	states   trial.States    // of the phase
	progress time.Time       // of the last change to a state that is new
	requests int             // of the operator, without watches
	watches  int             // of the operator
	of       map[string]bool // resources that it has asked for
	known    map[string]bool // requests that it has made
	elects   bool            // it has tried to create a Lease
	leads    bool            // and has one
	works    bool            // it has asked for more than lists and watches in the phase
}

func newRecorder() *recorder {
	return &recorder{phase: map[key]*history{}, of: map[string]bool{}, known: map[string]bool{}, progress: time.Now()}
}

// next ends a phase, and returns what happened in it.
func (r *recorder) next() map[key]*history {
	r.mu.Lock()
	defer r.mu.Unlock()
	ended := r.phase
	r.states = trial.States{}
	r.phase, r.progress, r.works = map[key]*history{}, time.Now(), false
	return ended
}

// hasWorked reports whether the operator has asked for more in the phase than lists and watches. One
// that reads from its cache and has nothing to do does not, and neither does one that has not begun.
func (r *recorder) hasWorked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.works
}

// started is called before a process is started: it is not idle before it watches something, and
// each of its first requests is new.
func (r *recorder) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches, r.known, r.progress = 0, map[string]bool{}, time.Now()
	r.elects, r.leads = false, false
}

func (r *recorder) asked(request *apiserver.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[request.Resource.GroupResource().String()] = true
	if what := request.Method + " " + request.Path + " " + request.Verb; !r.known[what] && !cluster.Ignored(request.Resource) {
		r.known[what], r.progress = true, time.Now()
	}
	r.elects = r.elects || request.Verb == "create" && request.Resource.GroupResource() == trial.Leases.GroupResource()
	r.works = r.works || !slices.Contains([]string{"", "list", "watch"}, request.Verb) && !cluster.Ignored(request.Resource)
	if request.Verb == "watch" {
		r.watches++
	} else if request.Verb != "" {
		r.requests++
	}
}

// forPlayers are resources that only players read for most operators.
var forPlayers = map[string]bool{
	"nodes": true, "persistentvolumes": true, "persistentvolumeclaims": true, "serviceaccounts": true,
	"endpointslices.discovery.k8s.io": true, "endpoints": true, "controllerrevisions.apps": true, "replicasets.apps": true, "pods": true,
}

func (r *recorder) hasAsked(resource string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[resource]
}

var (
	errNothingWatched = errors.New("the operator has not watched anything: does it use the kubeconfig file of KUBECONFIG? \"{kubeconfig}\" in an argument stands for its path")
	errNotLeader      = errors.New("the operator has not become the leader: it does nothing, which is no plan")
)

// idleFor returns for how long nothing new has happened, and why this means nothing.
func (r *recorder) idleFor() (time.Duration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.elects && !r.leads:
		return time.Since(r.progress), errNotLeader
	case r.watches == 0:
		return time.Since(r.progress), errNothingWatched
	}
	return time.Since(r.progress), nil
}

func (r *recorder) changed(c apiserver.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	resource := c.Resource.GroupResource()
	if cluster.Ignored(c.Resource) {
		r.leads = r.leads || c.New != nil && resource == trial.Leases.GroupResource() && trial.IsOperator(c.Actor)
		return
	}
	k := key{resource, c.Namespace, c.Name}
	h := r.phase[k]
	if h == nil {
		h = &history{key: k, order: len(r.phase), first: c.Old}
		r.phase[k] = h
	}
	h.recreated = h.recreated || c.Old == nil && h.first != nil
	h.last = c.New
	h.collected = h.collected || c.Actor == trial.ServerActor && !isDeleted(c.Old) && (c.New == nil || isDeleted(c.New))
	operator := trial.IsOperator(c.Actor)
	switch {
	case operator:
		h.byOperator++
	case c.Actor == trial.UserActor:
		h.byUser++
	}
	switch _, isNew := r.states.Enter(c); {
	case isNew:
		r.progress = time.Now()
	case operator:
		h.repeats++
	}
}

func isDeleted(content map[string]any) bool {
	return content != nil && (&unstructured.Unstructured{Object: content}).GetDeletionTimestamp() != nil
}
