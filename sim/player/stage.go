// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/fakes"
)

// A World is the cluster that players act in. The simulator has one for each run.
type World interface {
	// Object returns the object of the type of kind with a key, or nil. It must not be changed.
	Object(kind client.Object, key client.ObjectKey) client.Object

	// Objects returns the objects of the type of kind in a namespace, or in all if it is empty,
	// ordered by namespace and name. They must not be changed.
	Objects(kind client.Object, namespace string) []client.Object

	// Kind returns the kind of the type of an object.
	Kind(obj client.Object) (schema.GroupVersionKind, error)

	// Write does a write on behalf of an actor.
	Write(actor string, w Write) error
}

// A Write is one of a player.
type Write struct {
	Verb        string // create, update or delete
	Subresource string
	Parent      client.Object // whose subresource is created; nil for other writes
	Object      client.Object
	Options     *metav1.DeleteOptions // of a deletion
}

// A Stage is what a player sees and does during one call. Reads return copies of what is in the
// cluster at this moment; there is no cache that could be stale. A fake of the user's own, a sim.Fake,
// gives a stage its instance of the run: dns.Of(s).
type Stage struct {
	member
	world World
	actor string
	after time.Duration
	admit func(obj client.Object) error // the player's, or nil
}

// member makes a stage belong to the run of its world, whose fakes it can use then.
type member = fakes.Member

// NewStage returns a stage on which an actor writes.
func NewStage(world World, actor string) *Stage {
	s := &Stage{world: world, actor: actor}
	if of, ok := world.(fakes.OfRun); ok && fakes.Of(of) != nil {
		s.member = fakes.Of(of).Member()
	}
	return s
}

// Get returns an object, and reports whether it is there.
func Get[T client.Object](s *Stage, namespace, name string) (T, bool) {
	obj := s.world.Object(prototype[T](), client.ObjectKey{Namespace: namespace, Name: name})
	if obj == nil {
		var none T
		return none, false
	}
	return obj.DeepCopyObject().(T), true
}

// List returns the objects of a kind in a namespace, or in all if it is empty, ordered by namespace
// and name.
func List[T client.Object](s *Stage, namespace string) []T {
	return list[T](s, namespace, func(client.Object) bool { return true })
}

// Children returns the objects of a kind that an object controls, ordered by name.
func Children[T client.Object](s *Stage, owner client.Object) []T {
	return list[T](s, owner.GetNamespace(), func(obj client.Object) bool { return metav1.IsControlledBy(obj, owner) })
}

func list[T client.Object](s *Stage, namespace string, want func(client.Object) bool) []T {
	var found []T
	for _, obj := range s.world.Objects(prototype[T](), namespace) {
		if want(obj) {
			found = append(found, obj.DeepCopyObject().(T))
		}
	}
	return found
}

func prototype[T client.Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// Create creates an object.
func (s *Stage) Create(obj client.Object) error {
	if s.admit != nil {
		if err := s.admit(obj); err != nil {
			return fmt.Errorf("admitting %s: %w", describe(obj), err)
		}
	}
	return s.world.Write(s.actor, Write{Verb: "create", Object: obj})
}

// CreateFor creates an object in the namespace of another one that becomes its controller: it is
// deleted with it, and its changes call the player of the owner.
func (s *Stage) CreateFor(owner, obj client.Object) error {
	kind, err := s.world.Kind(owner)
	if err != nil {
		return err
	}
	obj.SetNamespace(owner.GetNamespace())
	obj.SetOwnerReferences(append(obj.GetOwnerReferences(), *metav1.NewControllerRef(owner, kind)))
	return s.Create(obj)
}

// Update writes an object, but for its status, unless it is in the cluster as it is.
func (s *Stage) Update(obj client.Object) error { return s.update(obj, "") }

// UpdateStatus writes the status of an object, unless it is in the cluster as it is.
func (s *Stage) UpdateStatus(obj client.Object) error { return s.update(obj, "status") }

func (s *Stage) update(obj client.Object, subresource string) error {
	current := s.world.Object(obj, client.ObjectKeyFromObject(obj))
	if current == nil || current.GetUID() != obj.GetUID() {
		return nil // it is gone, and another one is not meant
	}
	// A write of the same call may have changed it: only players write at this moment.
	obj.SetResourceVersion(current.GetResourceVersion())
	obj.SetManagedFields(current.GetManagedFields())
	if equality.Semantic.DeepEqual(current, obj) {
		return nil
	}
	return s.world.Write(s.actor, Write{Verb: "update", Subresource: subresource, Object: obj})
}

// bind binds a Pod to a node, as the scheduler does.
func (s *Stage) bind(pod *corev1.Pod, node string) error {
	current := s.world.Object(pod, client.ObjectKeyFromObject(pod))
	if current == nil || current.GetUID() != pod.GetUID() {
		return nil
	}
	return s.world.Write(s.actor, Write{Verb: "create", Subresource: "binding", Parent: pod, Object: &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}})
}

// Delete deletes an object in the background, if it is still the same one.
func (s *Stage) Delete(obj client.Object, options ...client.DeleteOption) error {
	current := s.world.Object(obj, client.ObjectKeyFromObject(obj))
	if current == nil || current.GetUID() != obj.GetUID() {
		return nil
	}
	uid := obj.GetUID()
	all := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid}}
	o := (&client.DeleteOptions{}).ApplyOptions(append(all, options...)).AsDeleteOptions()
	return s.world.Write(s.actor, Write{Verb: "delete", Object: obj, Options: o})
}

// After asks for another call for the same object, although nothing may have changed. The shortest
// time of a call counts. Settle does not wait for a time that is longer than Quiet of the workload.
func (s *Stage) After(d time.Duration) {
	d = max(d, time.Millisecond)
	if s.after == 0 || d < s.after {
		s.after = d
	}
}

// Again returns for what After was called: zero if it was not.
func (s *Stage) Again() time.Duration { return s.after }

// until asks for another call when a time has come, and reports whether it has come already.
func (s *Stage) until(at time.Time) bool {
	d := time.Until(at)
	if d > 0 {
		s.After(d)
	}
	return d <= 0
}

// describe names an object in errors.
func describe(obj client.Object) string {
	return fmt.Sprintf("%s %s", reflect.TypeOf(obj).Elem().Name(), client.ObjectKeyFromObject(obj))
}
