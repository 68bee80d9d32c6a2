// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A SetOption configures all sets of a step. See [Children].
type SetOption func(*settings)

// Owns declares kinds of objects that get an owner reference. They are watched, and the garbage
// collector deletes them with their owner. An object is given as its cache has it: typed, or an
// *unstructured.Unstructured with its kind.
func Owns(objects ...client.Object) SetOption {
	return func(s *settings) { s.declare(objects, func(k *kind) { k.owned = true }) }
}

// Tracks declares kinds of objects that get no owner reference: those in another namespace than
// their owner, cluster-scoped ones, and what has the policy [Keep] or [Unowned]. They are watched,
// and the step deletes them when their owner is deleted: the engine puts its finalizer on each
// owner. So that none is forgotten, whatever happens, the names of these objects are written to an
// annotation of the owner before they are created.
func Tracks(objects ...client.Object) SetOption {
	return func(s *settings) { s.declare(objects, func(k *kind) { k.tracked = true }) }
}

// Keeps declares kinds of objects that all have the policy [Keep]: they stay when they leave the set, and
// when their owner is deleted. They are watched, and never deleted. So, other than with [Tracks], the
// owner gets neither a finalizer nor an annotation for them.
func Keeps(objects ...client.Object) SetOption {
	return func(s *settings) { s.declare(objects, func(k *kind) { k.kept = true }) }
}

// Formerly declares kinds that older versions of the operator had in their sets. Objects that they
// have left are pruned. Objects that they have tracked are also deleted with their owner: an owner
// that names such objects keeps the engine's finalizer.
func Formerly(objects ...client.Object) SetOption {
	return func(s *settings) { s.declare(objects, func(k *kind) { k.former = true }) }
}

// DeleteInOrder deletes the objects of a deleted owner wave by wave, the last one first, each when
// those of the one before are gone. The engine puts its finalizer on each owner. Without it, the
// garbage collector deletes owned objects in no particular order.
func DeleteInOrder() SetOption { return func(s *settings) { s.ordered = true } }

// Condition sets the type of the condition that summarizes the objects. By default it is the name
// of the step with "Ready": "WorkloadReady".
func Condition(conditionType string) SetOption {
	return func(s *settings) { s.condition = conditionType }
}

// PruneLimit sets how many objects may be deleted at once because they have left the set, 20 by
// default. If there are more, none is deleted, and the condition says so: most likely the set is
// wrong. A negative number means no limit.
func PruneLimit(n int) SetOption { return func(s *settings) { s.pruneLimit = n } }

// Migrate names field managers of clients that kept the objects before, by creating and updating
// them: an older version of the operator, "helm", or "kubectl-client-side-apply". Fields that they
// have set become ours, and are removed if the set does not have them. It costs one request more
// for each object, once.
func Migrate(managers ...string) SetOption {
	return func(s *settings) { s.migrate = append(s.migrate, managers...) }
}

// Renamed names what the step was called in older versions of the operator, as "Step", or as
// "engine/Step" if the name of the engine has changed too. Their objects are those of this set.
// Without it, the objects of a step that has another name now belong to another set, and are
// refused.
func Renamed(former ...string) SetOption {
	return func(s *settings) { s.former = append(s.former, former...) }
}

// splitFormer returns the engine and the step of a former name. The engine is empty if it is the
// same.
func splitFormer(former string) (engine, name string) {
	if engine, name, ok := strings.Cut(former, "/"); ok {
		return engine, name
	}
	return "", former
}

// formerLabels returns the labels of the objects of former names.
func (s *settings) formerLabels(now identity) []string {
	var labels []string
	for _, former := range s.former {
		then := now
		engine, name := splitFormer(former)
		then.manager, then.name = cmp.Or(engine, now.manager), name
		labels = append(labels, then.label())
	}
	return labels
}

// settings are those of all sets of a step.
type settings struct {
	name       string
	kinds      []*kind
	ordered    bool
	condition  string
	pruneLimit int
	migrate    []string
	former     []string // names
	anyKind    bool     // kinds are not declared, and no object has an owner reference
	loose      bool     // the objects are in no set
}

const defaultPruneLimit = 20

func newSettings(name string, options []SetOption) *settings {
	s := &settings{name: name, condition: conditionTypeOf(name), pruneLimit: defaultPruneLimit}
	for _, o := range options {
		o(s)
	}
	return s
}

// cleans reports whether something has to be done when an owner is deleted.
func (s *settings) cleans() bool {
	if s.ordered {
		return true
	}
	for _, k := range s.kinds {
		if k.tracked {
			return true
		}
	}
	return false
}

// mayHaveTracked reports whether owners may name objects that an older version of the operator has
// tracked.
func (s *settings) mayHaveTracked() bool {
	return slices.ContainsFunc(s.kinds, func(k *kind) bool { return k.former })
}

// names returns the names of the step, the present one first.
func (s *settings) names() []string {
	names := []string{s.name}
	for _, former := range s.former {
		_, name := splitFormer(former)
		names = append(names, name)
	}
	return names
}

// A kind is one of objects of a set.
type kind struct {
	object  client.Object // of the type that the cache has
	owned   bool
	tracked bool
	former  bool
	kept    bool
}

// stays reports whether objects of the kind are never deleted.
func (k *kind) stays() bool { return k.kept && !k.owned && !k.tracked && !k.former }

func (s *settings) declare(objects []client.Object, as func(*kind)) {
	for _, obj := range objects {
		k := &kind{object: obj}
		for _, known := range s.kinds {
			if reflect.TypeOf(known.object) == reflect.TypeOf(obj) && known.object.GetObjectKind().GroupVersionKind() == obj.GetObjectKind().GroupVersionKind() {
				k = known
			}
		}
		as(k)
		if k.object == obj {
			s.kinds = append(s.kinds, k)
		}
	}
}

// empty returns a new object of the type that the cache has.
func (k *kind) empty(gvk schema.GroupVersionKind) client.Object {
	obj := reflect.New(reflect.TypeOf(k.object).Elem()).Interface().(client.Object) //nolint:errcheck // of the same type
	if _, ok := obj.(*unstructured.Unstructured); ok {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return obj
}

// stays reports whether objects of a kind are never deleted.
func (s *settings) stays(c client.Client, gk schema.GroupKind) bool {
	return slices.ContainsFunc(s.kinds, func(k *kind) bool {
		gvk, err := c.GroupVersionKindFor(k.object)
		return err == nil && gvk.GroupKind() == gk && k.stays()
	})
}

// find returns the kind that was declared for a group and kind.
func (s *settings) find(c client.Client, kindOf schema.GroupVersionKind) (*kind, schema.GroupVersionKind, error) {
	if s.anyKind {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(kindOf)
		return &kind{object: obj, tracked: true}, kindOf, nil
	}
	wanted := kindOf.GroupKind()
	for _, k := range s.kinds {
		gvk, err := c.GroupVersionKindFor(k.object)
		if err != nil {
			return nil, gvk, fmt.Errorf("kind of %T: %w: register it with the scheme of the manager", k.object, err)
		}
		if gvk.GroupKind() == wanted && (k.owned || k.tracked || k.kept) {
			return k, gvk, nil
		}
	}
	return nil, schema.GroupVersionKind{}, errUndeclared
}

var errUndeclared = errors.New("its kind is not declared")
