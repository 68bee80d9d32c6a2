// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package players calls the players of a run: it finds out which changes concern which of them, and
// does their writes.
package players

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fakes"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// How long players take, in virtual time.
const (
	reaction = 100 * time.Millisecond // from a change to the call that it causes
	retry    = time.Second            // from the first error to the next call; doubles with each error
	maxRetry = time.Hour
)

// MaxCalls is how often a player may be called for one object of a simulation. One that is called more
// often writes at each call.
const MaxCalls = 5000

// Options are the parts of a run that players reach.
type Options struct {
	Set     player.Set
	Cluster *cluster.Cluster
	Scheme  *runtime.Scheme
	Trace   *trace.Trace

	// Fakes are those that players can use. If it is nil, they have fakes of their own.
	Fakes *fakes.Run

	// MaxCalls is how often a player may be called for one object. 0 means that there is no limit:
	// runs of hours in real time have none.
	MaxCalls int

	// Failed is called when a player can't be right: it has panicked, or it never stops.
	Failed func(text string)
}

// Players are those of one run. Only the driver uses them.
type Players struct {
	Options
	fakes.Member
	objects   *objects
	cast      []*actor
	changes   []change // whose calls are not queued yet
	queue     []item
	suspended bool
	failures  map[target]int // errors in a row
	calls     map[target]int
}

// actor is one player.
type actor struct {
	player.Player
	kind       schema.GroupKind
	resource   schema.GroupResource
	namespaced bool
	watches    []watch
}

type watch struct {
	player.Watch
	resource schema.GroupResource
}

// target is an object for which a player is called.
type target struct {
	actor int
	key   client.ObjectKey
}

// item is a call that is due.
type item struct {
	target
	at time.Time
}

// New returns the players of a run. It returns an error if the cluster does not know one of their
// kinds.
func New(o Options) (*Players, error) {
	if o.Fakes == nil {
		o.Fakes = fakes.New()
	}
	p := &Players{Options: o, Member: o.Fakes.Member(), objects: newObjects(o.Cluster.Server, o.Scheme), failures: map[target]int{}, calls: map[target]int{}}
	for _, q := range o.Set {
		k, err := p.objects.kindOf(q.Object())
		if err != nil {
			return nil, fmt.Errorf("the %s: %w", q.Name(), err)
		}
		a := &actor{Player: q, kind: k.gvk.GroupKind(), resource: k.resource.GroupResource(), namespaced: k.namespaced}
		for _, w := range q.Watches() {
			k, err := p.objects.kindOf(w.Kind)
			if err != nil {
				return nil, fmt.Errorf("the %s: %w", q.Name(), err)
			}
			a.watches = append(a.watches, watch{w, k.resource.GroupResource()})
		}
		p.cast = append(p.cast, a)
	}
	return p, nil
}

// Changed records a change. The server is locked meanwhile, so the calls that it causes are found
// later.
func (p *Players) Changed(c apiserver.Change) {
	if len(p.cast) > 0 {
		p.objects.changed(c)
		p.changes = append(p.changes, change{c, time.Now().Add(reaction)})
	}
}

// Known records an object that was there before the run: players see it, and leave it alone until
// something changes.
func (p *Players) Known(o apiserver.Object) {
	p.objects.changed(apiserver.Change{Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, New: o.Content})
}

// change is one that players react to at a time.
type change struct {
	apiserver.Change
	at time.Time
}

// react queues the calls that a change causes.
func (p *Players) react(c change) {
	kind := c.Resource.GroupResource()
	owners := controllersOf(c)
	seen := map[reflect.Type][]client.Object{} // the object before and after, by the type of a watch
	for i, a := range p.cast {
		if a.resource == kind && c.New != nil {
			p.call(target{i, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}}, c.at)
		}
		for _, owner := range owners {
			if owner.Kind != a.kind.Kind || groupOf(owner.APIVersion) != a.kind.Group {
				continue
			}
			key := client.ObjectKey{Namespace: c.Namespace, Name: owner.Name}
			if !a.namespaced {
				key.Namespace = ""
			}
			p.call(target{i, key}, c.at)
		}
		for _, w := range a.watches {
			if w.resource != kind {
				continue
			}
			as := reflect.TypeOf(w.Kind)
			if seen[as] == nil {
				seen[as] = decodeChange(c, w.Kind)
			}
			p.callWatchers(i, w, seen[as], c.at)
		}
	}
}

// controllersOf returns the controllers of an object that has changed: as it was and as it is, for who
// has lost it may need another one.
func controllersOf(c change) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for _, content := range []map[string]any{c.Old, c.New} {
		owner := metav1.GetControllerOfNoCopy(&unstructured.Unstructured{Object: content})
		if owner != nil && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			owners = append(owners, *owner)
		}
	}
	return owners
}

// decodeChange returns an object that has changed in the type of kind, as it was and as it is.
func decodeChange(c change, kind client.Object) []client.Object {
	objs := []client.Object{}
	for _, content := range []map[string]any{c.Old, c.New} {
		if content == nil {
			continue
		}
		if obj := decode(content, kind); obj != nil {
			objs = append(objs, obj)
		}
	}
	return objs
}

func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

// callWatchers queues the calls for the objects that depend on one that has changed.
func (p *Players) callWatchers(i int, w watch, seen []client.Object, at time.Time) {
	stage := player.NewStage(world{p}, p.cast[i].Name())
	for _, obj := range seen {
		for _, key := range w.Map(stage, obj) {
			p.call(target{i, key}, at)
		}
	}
}

// call queues a call, unless there is an earlier one.
func (p *Players) call(t target, at time.Time) {
	for i := range p.queue {
		if p.queue[i].target == t {
			if at.Before(p.queue[i].at) {
				p.queue[i].at = at
			}
			return
		}
	}
	p.queue = append(p.queue, item{t, at})
}

// Suspend keeps players from being called from now on: while it is proved that an idle operator stays
// idle, they would give it something to do.
func (p *Players) Suspend() { p.suspended = true }

// Resume ends what Suspend began.
func (p *Players) Resume() { p.suspended = false }

// Due returns when the next call is due.
func (p *Players) Due() time.Time {
	if i := p.first(); i >= 0 {
		return p.queue[i].at
	}
	return time.Time{}
}

// first returns the index of the call that comes first, or -1.
func (p *Players) first() int {
	for _, c := range p.changes {
		p.react(c)
	}
	p.changes = p.changes[:0]
	if p.suspended || len(p.queue) == 0 {
		return -1
	}
	first := 0
	for i := range p.queue {
		a, b := p.queue[i], p.queue[first]
		order := cmp.Or(a.at.Compare(b.at), cmp.Compare(a.actor, b.actor), cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
		if order < 0 {
			first = i
		}
	}
	return first
}

// Step makes the call that is due, and reports whether there was one.
func (p *Players) Step() bool {
	i := p.first()
	if i < 0 || p.queue[i].at.After(time.Now()) {
		return false
	}
	t := p.queue[i].target
	p.queue = slices.Delete(p.queue, i, i+1)
	p.play(t)
	return true
}

// play calls a player for an object.
func (p *Players) play(t target) {
	a := p.cast[t.actor]
	obj := p.objects.get(a.Object(), t.key)
	if obj == nil {
		delete(p.failures, t)
		return
	}
	if p.exhausted(t) {
		return
	}
	stage := player.NewStage(world{p}, a.Name())
	err := a.Play(stage, obj.DeepCopyObject().(client.Object))
	var panicked *player.PanicError
	switch {
	case errors.As(err, &panicked):
		p.Failed(err.Error())
	case err != nil:
		p.Trace.Add(a.Name(), "error", err.Error())
		p.call(t, time.Now().Add(min(retry<<min(p.failures[t], 20), maxRetry)))
		p.failures[t]++
	default:
		delete(p.failures, t)
	}
	if d := stage.Again(); d > 0 {
		p.call(t, time.Now().Add(d))
	}
}

// exhausted counts a call, and reports whether there were too many for the object.
func (p *Players) exhausted(t target) bool {
	if p.MaxCalls == 0 {
		return false
	}
	p.calls[t]++
	if p.calls[t] == p.MaxCalls+1 {
		p.Failed(fmt.Sprintf("the %s was called more than %d times for %s: it writes at each call", p.cast[t.actor].Name(), p.MaxCalls, t.key))
	}
	return p.calls[t] > p.MaxCalls
}

// world is the cluster as players see it.
type world struct{ *Players }

var (
	_ player.World = world{}
	_ fakes.OfRun  = world{}
)

func (w world) Object(kind client.Object, key client.ObjectKey) client.Object {
	return w.objects.get(kind, key)
}

func (w world) Objects(kind client.Object, namespace string) []client.Object {
	return w.objects.list(kind, namespace)
}

func (w world) Kind(obj client.Object) (schema.GroupVersionKind, error) {
	k, err := w.objects.kindOf(obj)
	return k.gvk, err
}

// Write sends a write to the server.
func (w world) Write(as string, write player.Write) error {
	gvk, err := w.objects.gvkOf(write.Object)
	if err != nil {
		return err
	}
	target := write.Object
	if write.Parent != nil {
		target = write.Parent
	}
	k, err := w.objects.kindOf(target)
	if err != nil {
		return err
	}
	namespace := write.Object.GetNamespace()
	if !k.namespaced {
		namespace = ""
	}
	path := cluster.CollectionPath(k.resource, namespace)
	var body []byte
	method := map[string]string{"create": http.MethodPost, "update": http.MethodPut, "delete": http.MethodDelete}[write.Verb]
	if write.Verb == "delete" {
		body, err = json.Marshal(write.Options)
	} else {
		body, err = encode(write.Object, gvk)
	}
	if err != nil {
		return fmt.Errorf("encoding %s: %w", write.Object.GetName(), err)
	}
	if write.Verb != "create" || write.Parent != nil {
		path += "/" + write.Object.GetName()
	}
	if write.Subresource != "" {
		path += "/" + write.Subresource
	}
	_, err = w.Cluster.Ask(as, method, path, "application/json", body)
	return err
}
