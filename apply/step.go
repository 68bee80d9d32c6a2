// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// Children returns a step that keeps the objects which should exist for an object. Want adds them
// to a set; it reads what it needs through req, and writes nothing:
//
//	apply.Children("Workload", func(_ context.Context, req *step.Request[*v1.Website], want *apply.Set) error {
//		want.Add(deployment(req.Object), service(req.Object))
//		want.Add(migration(req.Object), apply.Wave(-1), apply.Replace)
//		return nil
//	}, apply.Owns(&appsv1.Deployment{}, &corev1.Service{}, &batchv1.Job{}))
//
// The step does this with them:
//
//   - It applies them on the server side, as the engine's field owner: up to 8 of a [Wave] at the
//     same time. An unchanged object costs no request, also after a restart.
//   - It deletes what has left the set.
//   - It leaves objects of other owners alone; see [Adopt].
//   - It keeps a condition that says whether all are ready, by the rules of kstatus, and names the
//     first that is not. A Job is ready when it is complete. Until all are ready, the steps after
//     it wait.
//   - The kinds that [Owns] and [Tracks] declare are watched by the controller that
//     [step.Engine.Complete] makes. An object of another kind is an error.
//   - An error of want, a wait too, changes nothing in the cluster, and deletes nothing.
//
// Its role needs get, list, watch, create, patch and delete for the declared kinds.
func Children[T client.Object](name string, want func(ctx context.Context, req *step.Request[T], want *Set) error, options ...SetOption) step.Step[T] {
	c := &children[T]{settings: newSettings(name, options), want: want, states: newStates(), orphaning: newOrphaning()}
	s := step.Step[T]{Name: name, Do: c.do, Conditions: c.conditions(), Watches: c.watches, Uses: c.uses(), Plan: c.plan}
	if cleans := c.settings.cleans(); cleans || c.settings.mayHaveTracked() {
		s.Cleanup = c.cleanUp
		s.Watches = func() []step.Watch { return append(c.watches(), watchesOfOwners[T](c.orphaning)...) }
		if !cleans {
			s.Cleans = c.hasTracked
		}
	}
	return s
}

type children[T client.Object] struct {
	settings *settings
	want     func(ctx context.Context, req *step.Request[T], want *Set) error
	states   *states
	watched  *index // nil until the watches are made
	// orphaning are owners whose objects stay.
	orphaning *orphaning
}

// conditions are none for a kind without conditions.
func (c *children[T]) conditions() []condition.Declaration {
	if _, err := condition.Of(reflect.New(reflect.TypeFor[T]().Elem()).Interface()); err != nil {
		return nil
	}
	return []condition.Declaration{{Type: c.settings.condition}}
}

func (c *children[T]) do(ctx context.Context, req *step.Request[T]) error {
	k, err := c.keeper(req)
	if err != nil {
		return err
	}
	var set Set
	if err := c.want(ctx, req, &set); err != nil {
		return err
	}
	r := k.keep(ctx, &set)
	c.mark(req, r)
	if run := journal.RunFromContext(ctx); run != nil && len(r.states) > 0 {
		run.Note(ctx, journal.Kept{Step: c.settings.name, Children: r.children(req.Classify)})
	}
	switch lacks := r.lacks(); {
	case r.err != nil:
		return r.err
	case r.limited != nil:
		return failure.Terminal(r.limited, reasonPruneLimit, "restore what the set is made from, delete the objects yourself, or raise the limit")
	case lacks != "" && slices.ContainsFunc(r.states, func(s state) bool { return s.unseen }):
		return ctrlkit.Poll(lacks, goneEvery)
	case lacks != "" && slices.ContainsFunc(r.states, func(s state) bool { return s.item.missing }):
		return ctrlkit.Poll(lacks, definitionEvery)
	case lacks != "":
		return ctrlkit.Wait(lacks)
	case slices.ContainsFunc(r.states, func(s state) bool { return s.uncached && !c.watched.hasShown(s.item.groupKind()) }):
		return ctrlkit.RequeueWithin(unseenAfter) // a cache that selects may never have it
	}
	return nil
}

// mark sets the condition. An error without a state of an object is left to the engine.
func (c *children[T]) mark(req *step.Request[T], r *result) {
	conditions := req.Conditions
	if conditions == nil || !conditions.Declared(c.settings.condition) {
		return
	}
	set := c.settings.condition
	switch lacks := r.lacks(); {
	case r.err != nil:
		classified := req.Classify(r.err)
		if classified.Silent(1) {
			return
		}
		conditions.MarkUnhealthy(set, classified.Severity, classified.Reason, textOf(r.err))
	case r.limited != nil:
		conditions.MarkUnhealthy(set, condition.SeverityError, reasonPruneLimit, r.limited.Error())
	case lacks == "":
		conditions.MarkHealthy(set, reasonAllReady, "")
	case r.failed():
		conditions.MarkUnhealthy(set, condition.SeverityError, reasonObjectFailed, lacks)
	default:
		conditions.MarkUnhealthy(set, condition.SeverityInfo, reasonNotAllReady, lacks)
	}
}

// keeper returns what keeps the set of one object.
func (c *children[T]) keeper(req *step.Request[T]) (*keeper, error) {
	gvk, err := req.Client.GroupVersionKindFor(req.Object)
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", req.Object, err)
	}
	k := &keeper{
		settings: c.settings, client: req.Client, live: req.APIReader, manager: req.FieldOwner(), owner: req.Object, ownerKind: gvk,
		identity: identity{gvk.GroupKind(), client.ObjectKeyFromObject(req.Object), req.FieldOwner(), c.settings.name}, watched: c.watched, states: c.states, dependOn: req.DependOn,
	}
	k.label = k.identity.label()
	k.labels = append(c.settings.formerLabels(k.identity), k.label)
	k.remember, k.event = req.Annotate, req.Event
	return k, nil
}

// watches are of the kinds that were declared.
func (c *children[T]) watches() []step.Watch {
	c.watched = &index{}
	watches := make([]step.Watch, len(c.settings.kinds))
	for i, k := range c.settings.kinds {
		watches[i] = step.Watch{Object: k.object, Owned: k.owned, Note: c.watched.note}
		watches[i].Mapped = func(obj client.Object, owners schema.GroupKind) []client.ObjectKey {
			keys := c.watched.unblock(k, client.ObjectKeyFromObject(obj))
			if key, ok := ownerOf(obj.GetAnnotations()[OwnerAnnotation], owners); ok && (k.tracked || k.former || k.kept) {
				keys = append(keys, key)
			}
			return keys
		}
	}
	return watches
}

// cleanUp deletes the children that the garbage collector does not delete.
func (c *children[T]) cleanUp(ctx context.Context, req *step.Request[T]) error {
	if stay, wait := keepsChildren(c.orphaning, req); stay || wait != nil {
		return wait
	}
	k, err := c.keeper(req)
	if err == nil {
		err = k.readTracked(ctx)
	}
	if err != nil {
		return err
	}
	waits, err := k.cleanUp(ctx)
	switch {
	case err != nil:
		return err
	case waits != "":
		return ctrlkit.Poll(waits, goneEvery)
	}
	return nil
}

// hasTracked reports whether an owner names children that an older version of the operator has made
// without owner references.
func (c *children[T]) hasTracked(req *step.Request[T]) bool {
	return slices.ContainsFunc(c.settings.notes(trackedPrefix, req.FieldOwner()), func(n note) bool {
		return req.Object.GetAnnotations()[n.key] != ""
	})
}

// goneEvery is how often is looked whether objects are gone, as a precaution: a watch reports it.
const goneEvery = 10 * time.Second

// definitionEvery is how often is looked whether the API server has a kind, as a precaution: the
// engine reconciles all objects when its watch begins.
const definitionEvery = time.Minute

// lacks says what the set lacks: "1 of 3: Deployment default/web: 1 of 2 replicas updated". It is
// empty if all are ready.
func (r *result) lacks() string {
	ready, first := 0, ""
	for i := range r.states {
		s := &r.states[i]
		switch {
		case s.ready:
			ready++
		case first != "" || s.err != nil || s.later:
		case s.waits != "":
			first = s.item.Kind + " " + s.item.Name + ": waits for " + s.waits
		default:
			first = strings.TrimSuffix(s.item.Kind+" "+s.item.Name+": "+s.lacks, ": ")
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("%d of %d ready: %s", ready, len(r.states), first)
}

// children returns the states of all objects, for the journal.
func (r *result) children(classify func(error) failure.Classification) []journal.Child {
	all := make([]journal.Child, len(r.states))
	for i := range r.states {
		s, ref := &r.states[i], r.states[i].item.Ref
		c := journal.Child{Object: journal.ObjectOf(ref.groupKind(), ref.key()), State: journal.ChildNotReady, Text: s.lacks}
		switch {
		case s.err != nil:
			classified := classify(s.err)
			c.State, c.Text, c.Reason, c.Remedy = journal.ChildFailed, s.err.Error(), classified.Reason, classified.Remedy
		case s.later:
			c.State, c.Text = journal.ChildBlocked, s.waits
		case s.waits != "":
			c.State, c.Text = journal.ChildWaiting, s.waits
		case s.ready:
			c.State, c.Text = journal.ChildReady, ""
		case s.failed:
			c.State, c.Reason, c.Remedy = journal.ChildFailed, reasonObjectFailed, "check its own status and its Kubernetes events"
		}
		all[i] = c
	}
	return all
}

// failed reports whether an object will not become ready.
func (r *result) failed() bool {
	for i := range r.states {
		if r.states[i].failed && !r.states[i].ready {
			return true
		}
	}
	return false
}

// conditionTypeOf returns the type of condition for a name: "Credential store" has
// "CredentialStoreReady".
func conditionTypeOf(name string) string {
	var text strings.Builder
	upper := true
	for _, r := range name {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			upper = true
			continue
		}
		if upper {
			r = unicode.ToUpper(r)
		}
		text.WriteRune(r)
		upper = false
	}
	return text.String() + "Ready"
}
