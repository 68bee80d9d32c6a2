// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Player plays the controller of one kind. [New] makes one.
type Player struct {
	kind    reflect.Type // of the objects, a pointer to a struct
	play    func(s *Stage, obj client.Object) error
	watches []Watch
	admit   func(obj client.Object) error
}

// New returns the player of the kind T, such as *v1.Database.
//
// play is called a moment after each change of an object of the kind, and of an object whose
// controller reference names one. Several changes in that moment cause one call. obj is a copy of
// the object as it is in the cluster. play must work like a reconciler:
//
//   - It decides by what is in the cluster, and keeps nothing in variables: the object may have been
//     deleted and created again since the last call.
//   - It stops writing when there is nothing left to do. Writes that change nothing are left out.
//   - It is deterministic: it depends on neither the order of maps nor random numbers. time.Now
//     returns virtual time.
//   - It returns at once. For what takes time it calls [Stage.After].
//
// After an error, play is called again, each time after twice the time.
func New[T client.Object](play func(s *Stage, obj T) error) Player {
	return Player{kind: reflect.TypeFor[T](), play: func(s *Stage, obj client.Object) error { return play(s, obj.(T)) }}
}

// unlessDeleted leaves alone what is being deleted: the garbage collector deletes its children.
func unlessDeleted[T client.Object](play func(s *Stage, obj T) error) func(s *Stage, obj T) error {
	return func(s *Stage, obj T) error {
		if obj.GetDeletionTimestamp() != nil {
			return nil
		}
		return play(s, obj)
	}
}

// A Watch lets changes of other objects call a player.
type Watch struct {
	Kind client.Object

	// Map returns the objects for which the player is called when other has changed. It only reads.
	Map func(s *Stage, other client.Object) []client.ObjectKey
}

// Watching returns a player that is also called when an object of another kind has changed, for the
// objects that mapping returns. Children with a controller reference need no Watching.
func (p Player) Watching(kind client.Object, mapping func(s *Stage, other client.Object) []client.ObjectKey) Player {
	p.watches = append(slices.Clone(p.watches), Watch{kind, mapping})
	return p
}

// Admitting returns a player that passes each object to admit before it creates it, as an API server
// does with the mutating webhooks of an operator. admit changes the object in place. An error refuses
// it, and the player tries again later.
func (p Player) Admitting(admit func(obj client.Object) error) Player {
	p.admit = admit
	return p
}

// Name returns the name of the player in the trace: "job-player".
func (p Player) Name() string { return strings.ToLower(p.kind.Elem().Name()) + "-player" }

// Object returns an empty object of the player's kind.
func (p Player) Object() client.Object { return reflect.New(p.kind.Elem()).Interface().(client.Object) }

// Watches returns what else calls the player.
func (p Player) Watches() []Watch { return p.watches }

// Play calls the player for an object of its kind.
func (p Player) Play(s *Stage, obj client.Object) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Player: p.Name(), Value: r}
		}
	}()
	s.admit = p.admit
	return p.play(s, obj)
}

// PanicError is returned for a player that has panicked.
type PanicError struct {
	Player string
	Value  any
}

func (e *PanicError) Error() string { return fmt.Sprintf("the %s panicked: %v", e.Player, e.Value) }

// A Set is the players of a workload, at most one for each kind.
type Set []Player

// Defaults returns the players of Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, Pods,
// PersistentVolumeClaims, Services and Ingresses.
func Defaults() Set {
	return Set{Deployment(), ReplicaSet(), StatefulSet(), DaemonSet(), Job(nil), Pod(nil), PersistentVolumeClaim(), Service(), Ingress()}
}

// None returns a set without players: nothing happens to objects but what the operator and the
// script do.
func None() Set { return Set{} }

// With returns a set with more players. They replace those of the same kinds.
func (s Set) With(players ...Player) Set {
	out := slices.Clone(s)
	for _, p := range players {
		if i := slices.IndexFunc(out, func(q Player) bool { return q.kind == p.kind }); i >= 0 {
			out[i] = p
		} else {
			out = append(out, p)
		}
	}
	return out
}

// Without returns a set without the players of some kinds: Defaults().Without(&batchv1.Job{}).
func (s Set) Without(kinds ...client.Object) Set {
	return slices.DeleteFunc(append(Set{}, s...), func(p Player) bool {
		return slices.ContainsFunc(kinds, func(kind client.Object) bool { return reflect.TypeOf(kind) == p.kind })
	})
}
