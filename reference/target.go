// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Target is what an object refers to. The zero value refers to nothing.
type Target struct {
	// Name is the name of an object.
	Name string

	// Labels select an object if there is no name: the oldest one that has all of them and can be
	// used. The choice stays as long as that object exists and has the labels.
	Labels map[string]string

	// Every selects all objects with the Labels that can be used, instead of the oldest one. It needs
	// [Options.Targets]. Objects that get or lose the labels are begun or ended to be used. One that
	// is being deleted is not used any more as soon as there is another one.
	Every bool

	// Keep keeps what Labels have selected: other labels, on the object or here, change nothing, and
	// neither does another object. It is selected again when it is gone, or when a person sets the
	// annotation of [Reference.ResolveAnnotation]. It must be the only target of an object.
	Keep bool

	// Optional says that the object does not wait for it: it does without one that is missing or can't
	// be used, and uses it as soon as it can be. It is read with [Reference.All].
	Optional bool

	// Namespace is where it is: that of the referring object if it is empty. Another one needs
	// Options.AllNamespaces or Options.Allowed.
	Namespace string

	// AnyNamespace selects by Labels in all namespaces. It needs Options.AllNamespaces or
	// Options.Allowed.
	AnyNamespace bool
}

func (t Target) isZero() bool { return t.Name == "" && len(t.Labels) == 0 }

// Options configure [New]. Name, and either Target or Targets, are required.
type Options[T, R client.Object] struct {
	// Name is a word for the reference, in lower case, such as "stream", another one for each
	// reference of a kind. The condition StreamReady and the annotation
	// references.ctrlkit.dev/stream are named after it.
	Name string

	// Target returns what obj refers to. It depends on nothing but the spec of obj, and is quick.
	Target func(obj T) Target

	// Targets is Target for an object that refers to several: [Reference.All] returns them.
	Targets func(obj T) []Target

	// NotReady returns why an object can't be used yet: "it has no address". It is empty if the
	// object can be used. An object that is in use may become unready: that ends no use. Without
	// it, the condition Ready has to be True, if the kind has conditions.
	NotReady func(target R) string

	// Copy sets fields in the spec of obj to what the objects have to which it refers: the name
	// that the system has given to a network. It is called with all of them, whenever one of them
	// may have changed, and changes nothing but such fields. Its changes are patched before the
	// object is claimed. It decides what a field is worth that a person has set: it leaves it
	// alone, or replaces it. It is not called for an object whose policy does not let it be
	// changed. Without Copy, what is referred to is read where it is needed, with [Reference.Get].
	Copy func(obj T, targets []R)

	// AllNamespaces allows references to other namespaces. The operator must be allowed to list
	// the referring kind in all of them.
	AllNamespaces bool

	// Allowed is AllNamespaces where the owner of the target has a say: it reports whether objects in a
	// namespace may refer to target, which is in another one. [Consented] asks an annotation of the
	// target. Who is not allowed can't learn whether the target exists, and can't keep it from being
	// deleted. It is asked each time: a consent that is taken back ends the uses.
	Allowed func(target client.Object, namespace string) bool

	// Later is the cache of the manager if the definition of the kind that is referred to may come
	// after the operator has started: see [step.Watch].
	Later cache.Cache
}

// ConsentAnnotation is read by [Consented]: the namespaces whose objects may refer to the object that
// has it, separated by commas, or "*".
const ConsentAnnotation = "allow.references.ctrlkit.dev/from"

// Consented reports whether the annotation [ConsentAnnotation] of target names a namespace. It is a
// value of [Options.Allowed].
func Consented(target client.Object, namespace string) bool {
	for name := range strings.SplitSeq(target.GetAnnotations()[ConsentAnnotation], ",") {
		if name = strings.TrimSpace(name); name == "*" || name == namespace && name != "" {
			return true
		}
	}
	return false
}

// elsewhere reports whether an object may refer to one in another namespace.
func (o *Options[T, R]) elsewhere() bool { return o.AllNamespaces || o.Allowed != nil }

// targets returns what an object refers to.
func (o *Options[T, R]) targets(obj T) []Target {
	all := []Target{}
	if o.Target != nil {
		all = append(all, o.Target(obj))
	} else {
		all = append(all, o.Targets(obj)...)
	}
	return slices.DeleteFunc(all, Target.isZero)
}

// check returns an error if a target, one of n, has fields that do not go together.
func (o *Options[T, R]) check(target Target, n int) error {
	invalid := func(why string) error { return fmt.Errorf("the reference %s: %s", o.Name, why) }
	switch {
	case target.Name != "" && (target.Every || target.Keep || target.AnyNamespace):
		return invalid("Every, Keep and AnyNamespace are for a target that labels select, not for the name " + target.Name)
	case target.Namespace != "" && target.AnyNamespace:
		return invalid("AnyNamespace is for a target without a namespace, not for one in " + target.Namespace)
	case target.Every && o.Targets == nil:
		return invalid("Every is for Options.Targets, not for Options.Target")
	case target.Keep && n > 1:
		return invalid(fmt.Sprintf("Keep is for the only target of an object, not for one of %d", n))
	}
	return nil
}

// anyNamespace is the namespace of the labels of objects in all namespaces.
const anyNamespace = "*"

// keys returns what a change of concerns an object: what it names, what it uses, and all objects
// with one of the labels that it selects.
func (r *Reference[T, R]) keys(obj T) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, target := range r.targets(obj) {
		key := client.ObjectKey{Namespace: target.Namespace, Name: target.Name}
		if target.Name == "" {
			name := slices.Min(slices.Collect(maps.Keys(target.Labels)))
			key.Name = labelKey(name, target.Labels[name])
			if target.AnyNamespace {
				key.Namespace = anyNamespace
			}
		}
		keys = append(keys, key)
	}
	for _, u := range r.recorded(obj).all() {
		keys = append(keys, u.key)
	}
	return keys
}

// labelKeys returns keys for each label of an object.
func (o *Options[T, R]) labelKeys(obj client.Object) []client.ObjectKey {
	var keys []client.ObjectKey
	for name, value := range obj.GetLabels() {
		keys = append(keys, client.ObjectKey{Namespace: obj.GetNamespace(), Name: labelKey(name, value)})
		if o.elsewhere() {
			keys = append(keys, client.ObjectKey{Namespace: anyNamespace, Name: labelKey(name, value)})
		}
	}
	return keys
}

// labelKey returns a name that no object has.
func labelKey(name, value string) string { return name + "=" + value }

// copy calls Options.Copy, and patches the object if that has changed it: then the object is another
// one, and the reconcile that follows sees it.
func (o *Options[T, R]) copy(ctx context.Context, req *step.Request[T], found []R) error {
	if o.Copy == nil || len(found) == 0 {
		return nil
	}
	to := req.Object.DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	o.Copy(to, slices.Clone(found))
	if reflect.DeepEqual(req.Object, to) {
		return nil
	}
	from := req.Object.DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	if !reflect.DeepEqual(from.GetAnnotations(), to.GetAnnotations()) || !reflect.DeepEqual(from.GetLabels(), to.GetLabels()) {
		return fmt.Errorf("the reference %s: Options.Copy has changed labels or annotations: it may only change the spec", o.Name)
	}
	if err := req.Save(ctx); err != nil { // the patch has a newer version
		return err
	}
	version := req.Object.GetResourceVersion()
	from.SetResourceVersion(version)
	to.SetResourceVersion(version)
	if err := req.Client.Patch(ctx, to, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("copying what the reference %s is to: %w", o.Name, err)
	}
	return ctrlkit.Poll("the fields that are copied through the reference "+o.Name, time.Second)
}
