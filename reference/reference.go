// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/permission"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Target is what an object refers to. The zero value refers to nothing.
type Target struct {
	// Name is the name of an object.
	Name string

	// Labels select an object if there is no name: the oldest one that has all of them and can be
	// used. The choice stays as long as that object exists and has the labels.
	Labels map[string]string

	// Namespace is where it is: that of the referring object if it is empty. Another one needs
	// Options.AllNamespaces.
	Namespace string
}

func (t Target) isZero() bool { return t.Name == "" && len(t.Labels) == 0 }

// Options configure [New]. Name and Target are required.
type Options[T, R client.Object] struct {
	// Name is a word for the reference, in lower case, such as "stream", another one for each
	// reference of a kind. The condition StreamReady and the annotation
	// references.ctrlkit.dev/stream are named after it.
	Name string

	// Target returns what obj refers to. It depends on nothing but the spec of obj, and is quick.
	Target func(obj T) Target

	// NotReady returns why an object can't be used yet: "it has no address". It is empty if the
	// object can be used. An object that is in use may become unready: that ends no use. Without
	// it, the condition Ready has to be True, if the kind has conditions.
	NotReady func(target R) string

	// AllNamespaces allows references to other namespaces. The operator must be allowed to list
	// the referring kind in all of them.
	AllNamespaces bool

	// Later is the cache of the manager if the definition of the kind that is referred to may come
	// after the operator has started: see [step.Watch].
	Later cache.Cache
}

// A Reference is one from objects of type T to objects of type R. It is safe for concurrent use.
// All engines of an operator that have to do with it use the same value.
type Reference[T, R client.Object] struct {
	Options[T, R]
	condition string
	found     step.Key[R]
	begun     step.Key[use] // by this reconcile
	memory    memory
	holds     *holds // nil without a guard
}

// Of is a [Reference] from objects of type T, whatever it refers to. Package external takes them.
type Of[T client.Object] interface {
	// Resolve finds what req.Object refers to, and marks the condition. The error is a wait if
	// there is none, or if it can't be used. Nothing is recorded.
	Resolve(ctx context.Context, req *step.Request[T]) error

	// Await does what Resolve does, and records the use on req.Object. Called in Claim: the use is
	// written before anything is made.
	Await(ctx context.Context, req *step.Request[T]) error

	// Confirm asks the API server for what Await has found. Called when the use is written, before
	// something is made that needs it: the cache may not have shown that it is being deleted. If it
	// is, the error is a wait, and a use that this reconcile has begun ends. It puts the finalizer of
	// a [Guard] on what is used.
	Confirm(ctx context.Context, req *step.Request[T]) error

	// Hold does what Confirm does if this reconcile has begun a use. Otherwise it makes no request,
	// unless what is used lacks the finalizer of a [Guard]. Called instead of Confirm when what needs
	// it exists.
	Hold(ctx context.Context, req *step.Request[T]) error

	// Unused reports whether Confirm has ended the only use of obj: nothing was made for it.
	Unused(obj T) bool

	// Settle ends the use of what req.Object referred to before. Called when what was made uses
	// the new one.
	Settle(req *step.Request[T])

	// Watches declares the watch that ends the waits.
	Watches() []step.Watch

	// Conditions declares the condition.
	Conditions() []condition.Declaration

	// Uses declares what is done with the objects that are referred to, beside reading them.
	Uses() []permission.Use
}

var (
	_ Of[client.Object]   = (*Reference[client.Object, client.Object])(nil)
	_ User[client.Object] = (*Reference[client.Object, client.Object])(nil)
)

var validName = regexp.MustCompile(`^[a-z][a-z0-9]{0,39}$`)

// New returns a reference. It panics if the options are invalid, which no input can cause.
func New[T, R client.Object](options Options[T, R]) *Reference[T, R] {
	if !validName.MatchString(options.Name) || options.Target == nil {
		panic(fmt.Sprintf("reference: %q: it needs a name of lower-case letters and digits, and a Target", options.Name))
	}
	if options.NotReady == nil {
		options.NotReady = func(target R) string { return notReady(target) }
	}
	return &Reference[T, R]{
		Options: options, found: step.NewKey[R](options.Name), begun: step.NewKey[use](options.Name),
		condition: strings.ToUpper(options.Name[:1]) + options.Name[1:] + "Ready",
	}
}

// notReady returns why the condition Ready is not True.
func notReady(obj client.Object) string {
	all, err := condition.Of(obj)
	if err != nil {
		return "" // its kind has no conditions
	}
	ready := meta.FindStatusCondition(all, condition.Ready)
	switch {
	case ready == nil:
		return "it has no condition Ready"
	case ready.Status == metav1.ConditionTrue:
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("its condition Ready is %s: %s: %s", ready.Status, ready.Reason, ready.Message), ": ")
}

// Conditions implements [Of].
func (r *Reference[T, R]) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: r.condition}}
}

// Watches implements [Of].
func (r *Reference[T, R]) Watches() []step.Watch {
	return []step.Watch{{
		Object:  newObject[R](),
		NamedBy: func(obj client.Object) []client.ObjectKey { return r.keys(obj.(T)) }, //nolint:errcheck // the engine is for T
		NamedAs: labelKeys,
		Later:   r.Later,
	}}
}

// Uses implements [Of].
func (r *Reference[T, R]) Uses() []permission.Use {
	if r.holds == nil {
		return nil
	}
	return []permission.Use{{Object: newObject[R](), Verbs: []string{"patch"}, By: "puts a finalizer on what is used"}}
}

// keys returns what a change of concerns an object: what it names, what it uses, and all objects
// with one of the labels that it selects.
func (r *Reference[T, R]) keys(obj T) []client.ObjectKey {
	var keys []client.ObjectKey
	target := r.Target(obj)
	if target.Name == "" && len(target.Labels) > 0 {
		name := slices.Min(slices.Collect(maps.Keys(target.Labels)))
		keys = append(keys, client.ObjectKey{Namespace: target.Namespace, Name: labelKey(name, target.Labels[name])})
	} else {
		keys = append(keys, client.ObjectKey{Namespace: target.Namespace, Name: target.Name})
	}
	for _, u := range r.recorded(obj) {
		keys = append(keys, u.key)
	}
	return keys
}

// labelKeys returns a key for each label of an object.
func labelKeys(obj client.Object) []client.ObjectKey {
	var keys []client.ObjectKey
	for name, value := range obj.GetLabels() {
		keys = append(keys, client.ObjectKey{Namespace: obj.GetNamespace(), Name: labelKey(name, value)})
	}
	return keys
}

// labelKey returns a name that no object has.
func labelKey(name, value string) string { return name + "=" + value }

// Resolve implements [Of].
func (r *Reference[T, R]) Resolve(ctx context.Context, req *step.Request[T]) error {
	target := r.Target(req.Object)
	if target.isZero() {
		r.mark(req, problem{})
		return nil
	}
	obj, p, err := r.find(ctx, req, target)
	if err != nil {
		return err
	}
	if p.reason != "" {
		r.mark(req, p)
		return p.wait
	}
	step.Put(req, r.found, obj)
	r.mark(req, problem{})
	return nil
}

// Await implements [Of].
func (r *Reference[T, R]) Await(ctx context.Context, req *step.Request[T]) error {
	if err := r.Resolve(ctx, req); err != nil {
		return err
	}
	uses := r.uses(req.Object)
	if obj, ok := step.Lookup(req, r.found); ok {
		u := useOf(obj)
		if !slices.Contains(uses, u) {
			step.Put(req, r.begun, u)
		}
		uses = append([]use{u}, slices.DeleteFunc(slices.Clone(uses), func(old use) bool { return old == u })...)
	}
	r.record(req.Object, uses)
	return nil
}

// Confirm implements [Of].
func (r *Reference[T, R]) Confirm(ctx context.Context, req *step.Request[T]) error {
	found, ok := step.Lookup(req, r.found)
	if !ok || req.APIReader == nil {
		return nil
	}
	live := &metav1.PartialObjectMetadata{}
	gvk, err := req.Client.GroupVersionKindFor(found)
	if err != nil {
		return err
	}
	live.SetGroupVersionKind(gvk)
	err = req.APIReader.Get(ctx, client.ObjectKeyFromObject(found), live)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %s: %w", nameOf(req.Client, found), err)
	case err == nil && live.UID == found.GetUID() && live.DeletionTimestamp.IsZero():
		return r.holds.put(ctx, req.Client, live)
	}
	if u, ok := step.Lookup(req, r.begun); ok { // else something may have been made before a crash
		r.giveUp(req.Object, u)
	}
	p := r.deleted(req, found)
	r.mark(req, p)
	return p.wait
}

// Hold implements [Of].
func (r *Reference[T, R]) Hold(ctx context.Context, req *step.Request[T]) error {
	if _, begun := step.Lookup(req, r.begun); begun {
		return r.Confirm(ctx, req)
	}
	if found, ok := step.Lookup(req, r.found); ok {
		return r.holds.put(ctx, req.Client, found)
	}
	return nil
}

// Settle implements [Of].
func (r *Reference[T, R]) Settle(req *step.Request[T]) {
	uses := r.uses(req.Object)
	found, ok := step.Lookup(req, r.found)
	if len(uses) == 0 {
		return
	}
	r.record(req.Object, slices.DeleteFunc(slices.Clone(uses), func(u use) bool { return !ok || u != useOf(found) }))
}

// Get returns what req.Object refers to: what Resolve or Await have found, or, for an object that
// is being deleted, what it uses. The error is a wait if there is none, also for an object that
// refers to nothing.
func (r *Reference[T, R]) Get(ctx context.Context, req *step.Request[T]) (R, error) {
	if obj, ok := step.Lookup(req, r.found); ok {
		return obj, nil
	}
	target := r.Target(req.Object)
	if uses := r.uses(req.Object); len(uses) > 0 {
		settled := uses[len(uses)-1].key
		target = Target{Namespace: settled.Namespace, Name: settled.Name}
	}
	var none R
	obj, p, err := r.lookUp(ctx, req, target)
	if err != nil {
		return none, err
	}
	return obj, p.wait
}

// A problem is why what an object refers to can't be used.
type problem struct {
	reason, message string // of the condition; empty if there is no problem
	wait            error
}

func (r *Reference[T, R]) problem(req *step.Request[T], suffix, message, waitsFor string) problem {
	_, err := ctrlkit.WaitFor(waitsFor)
	return problem{kindOf(req.Client, newObject[R]()) + suffix, message, err}
}

// deleted is the problem of an object that is being deleted and must not be used any more.
func (r *Reference[T, R]) deleted(req *step.Request[T], obj R) problem {
	what := nameOf(req.Client, obj) + ", which is being deleted, to be created again"
	return r.problem(req, "NotReady", "waiting for "+what, what)
}

// mark marks the condition.
func (r *Reference[T, R]) mark(req *step.Request[T], p problem) {
	switch {
	case req.Conditions == nil:
	case p.reason != "":
		req.Conditions.MarkUnhealthy(r.condition, condition.SeverityInfo, p.reason, p.message)
	default:
		req.Conditions.MarkHealthy(r.condition, kindOf(req.Client, newObject[R]())+"Ready", "")
	}
}

// newObject returns an empty object of a type.
func newObject[R client.Object]() R {
	return reflect.New(reflect.TypeFor[R]().Elem()).Interface().(R) //nolint:errcheck // it is the type
}

func kindOf(c client.Client, obj client.Object) string {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return reflect.TypeOf(obj).Elem().Name()
	}
	return gvk.Kind
}

// nameOf returns the kind and the name of an object: "Stream default/orders".
func nameOf(c client.Client, obj client.Object) string {
	return kindOf(c, obj) + " " + keyText(obj)
}

// keyText returns the namespace and the name of an object: "default/orders".
func keyText(obj client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}
