// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apply "github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// userActor is the actor of the change that a plan is made for, and serverActor that of the API
// server's own controllers.
const (
	userActor   = "user"
	serverActor = "server"
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
	collected  bool                       // the garbage collector has deleted it
	seen       map[[sha256.Size]byte]bool // the states it was in, without times
	repeats    int                        // changes by the operator to a state that it was in before
}

// A recorder records the changes of a cluster, by phase.
type recorder struct {
	mu       sync.Mutex // guards what follows
	phase    map[key]*history
	progress time.Time       // of the last change to a state that is new
	requests int             // of the operator, without watches
	watches  int             // of the operator
	of       map[string]bool // resources that it has asked for
	known    map[string]bool // requests that it has made
	elects   bool            // it has tried to create a Lease
	leads    bool            // and has one
}

func newRecorder() *recorder {
	return &recorder{phase: map[key]*history{}, of: map[string]bool{}, known: map[string]bool{}, progress: time.Now()}
}

// next ends a phase, and returns what happened in it.
func (r *recorder) next() map[key]*history {
	r.mu.Lock()
	defer r.mu.Unlock()
	ended := r.phase
	r.phase, r.progress = map[key]*history{}, time.Now()
	return ended
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
	if what := request.Method + " " + request.Path + " " + request.Verb; !r.known[what] && !isHousekeeping(request.Resource.GroupResource()) {
		r.known[what], r.progress = true, time.Now()
	}
	r.elects = r.elects || request.Verb == "create" && request.Resource.GroupResource() == leases.GroupResource()
	if request.Verb == "watch" {
		r.watches++
	} else if request.Verb != "" {
		r.requests++
	}
}

// isHousekeeping reports whether objects of a resource are about processes, and say nothing of what
// an operator does.
func isHousekeeping(resource schema.GroupResource) bool {
	return resource.Group == "coordination.k8s.io" || resource.Resource == "events"
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
	if isHousekeeping(resource) {
		r.leads = r.leads || c.New != nil && resource == leases.GroupResource() && isOperator(c.Actor)
		return
	}
	k := key{resource, c.Namespace, c.Name}
	h := r.phase[k]
	if h == nil {
		h = &history{key: k, order: len(r.phase), first: c.Old, seen: map[[sha256.Size]byte]bool{stateOf(c.Old): true}}
		r.phase[k] = h
	}
	h.recreated = h.recreated || c.Old == nil && h.first != nil
	h.last = c.New
	h.collected = h.collected || c.Actor == serverActor && !isDeleted(c.Old) && (c.New == nil || isDeleted(c.New))
	operator := isOperator(c.Actor)
	switch {
	case operator:
		h.byOperator++
	case c.Actor == userActor:
		h.byUser++
	}
	state := stateOf(c.New)
	if h.seen[state] {
		if operator {
			h.repeats++
		}
		return
	}
	h.seen[state], r.progress = true, time.Now()
}

func isDeleted(content map[string]any) bool {
	return content != nil && (&unstructured.Unstructured{Object: content}).GetDeletionTimestamp() != nil
}

// isOperator reports whether a change is one of the operator: whatever came from outside this
// process.
func isOperator(actor string) bool {
	return actor != userActor && actor != serverActor && !strings.HasSuffix(actor, "-player")
}

// moment matches times, as objects have them, and moments times within a text.
var (
	moment  = regexp.MustCompile(`^` + momentPattern + `$`)
	moments = regexp.MustCompile(momentPattern)
)

const momentPattern = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`

// stateOf returns the hash of an object without its version, its managers, and what grows with each
// change.
func stateOf(content map[string]any) [sha256.Size]byte {
	data, err := json.Marshal(timeless(essential(content)))
	if err != nil {
		panic(err) // it came from JSON
	}
	return sha256.Sum256(data)
}

// timeless returns a value without what grows with each change: times, and generations that were
// seen.
func timeless(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			if name != "observedGeneration" {
				out[name] = timeless(child)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = timeless(child)
		}
		return out
	case string:
		if moment.MatchString(v) {
			return "(time)"
		}
	}
	return value
}

// essential returns an object without what the API server keeps itself, and what kubectl,
// apply.Children and players keep of it.
func essential(content map[string]any) map[string]any {
	if content == nil {
		return nil
	}
	out := map[string]any{}
	for name, value := range content {
		switch name {
		case "apiVersion", "kind":
		case "metadata":
			if m, ok := value.(map[string]any); ok {
				out[name] = essentialMetadata(m)
			}
		default:
			out[name] = value
		}
	}
	return out
}

func essentialMetadata(metadata map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range metadata {
		switch name {
		case "managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink":
		case "annotations":
			kept := map[string]any{}
			annotations, _ := value.(map[string]any)
			for a, text := range annotations {
				if a != lastApplied && a != apply.HashAnnotation && a != player.HistoryAnnotation {
					kept[a] = text
				}
			}
			if len(kept) > 0 {
				out[name] = kept
			}
		default:
			out[name] = value
		}
	}
	return out
}
