// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Reference is one from objects of type T to objects of type R. It is safe for concurrent use.
// All engines of an operator that have to do with it use the same value.
type Reference[T, R client.Object] struct {
	Options[T, R]
	condition string
	found     step.Key[[]R]
	begun     step.Key[[]use] // by this reconcile
	memory    memory
	holds     *holds // nil without a guard
}

// Of is a [Reference] from objects of type T, whatever it refers to. Package external takes them.
type Of[T client.Object] interface {
	// Resolve finds what req.Object refers to, marks the condition, and records the uses on req.Object.
	// The error is a wait if something is missing, or can't be used; then nothing is recorded. Called
	// for an object whose policy only observes, or skips: nothing of its spec is changed. Save writes
	// the uses before Hold.
	Resolve(ctx context.Context, req *step.Request[T]) error

	// Await does what Resolve does, for an object that may be changed: it obeys the annotation
	// [Reference.ResolveAnnotation], and with Options.Copy it may patch the object, and return a wait.
	// Called in Claim: a use is written before anything is made.
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
	if !validName.MatchString(options.Name) || (options.Target == nil) == (options.Targets == nil) {
		panic(fmt.Sprintf("reference: %q: it needs a name of lower-case letters and digits, and either Target or Targets", options.Name))
	}
	if options.NotReady == nil {
		options.NotReady = func(target R) string { return notReady(target) }
	}
	return &Reference[T, R]{
		Options: options, found: step.NewKey[[]R](options.Name), begun: step.NewKey[[]use](options.Name),
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
		NamedAs: r.labelKeys,
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

// Resolve implements [Of].
func (r *Reference[T, R]) Resolve(ctx context.Context, req *step.Request[T]) error {
	found, err := r.usable(ctx, req, r.recordOf(req.Object))
	if err == nil {
		r.use(req, found)
	}
	return err
}

// Await implements [Of].
func (r *Reference[T, R]) Await(ctx context.Context, req *step.Request[T]) error {
	chosen := r.recordOf(req.Object)
	_, again := req.Object.GetAnnotations()[r.ResolveAnnotation()]
	if again {
		chosen = record{}
	}
	found, err := r.usable(ctx, req, chosen)
	if err != nil {
		return err
	}
	if err := r.copy(ctx, req, found); err != nil {
		return err
	}
	if r.use(req, found); again {
		annotate(req.Object, r.ResolveAnnotation(), "")
	}
	return nil
}

// usable returns what an object refers to, and marks the condition. The error is a wait if not all of it
// can be used.
func (r *Reference[T, R]) usable(ctx context.Context, req *step.Request[T], chosen record) ([]R, error) {
	found, p, err := r.resolve(ctx, req, chosen)
	if err != nil {
		return nil, err
	}
	r.mark(req, p)
	return found, p.wait
}

// use records that an object uses what was found. A former target is in use until Settle.
func (r *Reference[T, R]) use(req *step.Request[T], found []R) {
	known := r.recordOf(req.Object).all()
	step.Put(req, r.found, found)
	now := record{current: usesOf(found)}
	now.former = without(known, now.current)
	if begun := without(now.current, known); len(begun) > 0 {
		step.Put(req, r.begun, begun)
	}
	r.record(req.Object, now)
}

// Confirm implements [Of].
func (r *Reference[T, R]) Confirm(ctx context.Context, req *step.Request[T]) error {
	found, _ := step.Lookup(req, r.found)
	if req.APIReader == nil {
		return nil
	}
	for _, obj := range found {
		live := &metav1.PartialObjectMetadata{}
		gvk, err := req.Client.GroupVersionKindFor(obj)
		if err != nil {
			return err
		}
		live.SetGroupVersionKind(gvk)
		err = req.APIReader.Get(ctx, client.ObjectKeyFromObject(obj), live)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading %s: %w", nameOf(req.Client, obj), err)
		case err == nil && live.UID == obj.GetUID() && live.DeletionTimestamp.IsZero():
			if err := r.holds.put(ctx, req.Client, live); err != nil {
				return err
			}
			continue
		}
		begun, _ := step.Lookup(req, r.begun) // of others something may have been made before a crash
		r.giveUp(req.Object, begun)
		p := r.deleted(req, obj)
		r.mark(req, p)
		return p.wait
	}
	return nil
}

// Hold implements [Of].
func (r *Reference[T, R]) Hold(ctx context.Context, req *step.Request[T]) error {
	if _, begun := step.Lookup(req, r.begun); begun {
		return r.Confirm(ctx, req)
	}
	found, _ := step.Lookup(req, r.found)
	for _, obj := range found {
		if err := r.holds.put(ctx, req.Client, obj); err != nil {
			return err
		}
	}
	return nil
}

// Settle implements [Of].
func (r *Reference[T, R]) Settle(req *step.Request[T]) {
	known := r.recordOf(req.Object)
	if len(known.all()) == 0 {
		return
	}
	found, _ := step.Lookup(req, r.found)
	used := usesOf(found)
	r.record(req.Object, record{current: slices.DeleteFunc(known.all(), func(u use) bool { return !slices.Contains(used, u) })})
}

// Get returns what req.Object refers to: what Resolve or Await have found, or, for an object that
// is being deleted, what it uses. The error is a wait if there is none, also for an object that
// refers to nothing. Of several it is the first one: see All.
func (r *Reference[T, R]) Get(ctx context.Context, req *step.Request[T]) (R, error) {
	all, err := r.All(ctx, req)
	if err != nil || len(all) > 0 {
		return append(all, *new(R))[0], err
	}
	kind := kindOf(req.Client, newObject[R]())
	return *new(R), r.problem(req, "NotFound", "", "a "+kind).wait
}

// All returns everything that req.Object refers to, in the order of its targets, and each object once:
// what Resolve or Await have found, or, for an object that is being deleted, what it uses. There may
// be none if the targets are optional. The error is a wait if one is missing that is not optional.
func (r *Reference[T, R]) All(ctx context.Context, req *step.Request[T]) ([]R, error) {
	if found, ok := step.Lookup(req, r.found); ok {
		return slices.Clone(found), nil
	}
	known := r.recordOf(req.Object).all()
	targets := r.targets(req.Object)
	optional := slices.ContainsFunc(targets, func(t Target) bool { return t.Optional })
	if r.Target != nil && len(known) > 0 {
		known = known[len(known)-1:] // what was settled last: a resource has moved to a newer one, or has not
	}
	if len(known) > 0 {
		targets = targets[:0:0]
		for _, u := range known {
			targets = append(targets, Target{Namespace: u.key.Namespace, Name: u.key.Name, Optional: optional})
		}
	}
	var all []R
	for _, target := range targets {
		some, p, err := r.lookUp(ctx, req, target, record{current: known})
		switch {
		case err != nil:
			return nil, err
		case p.wait != nil && !target.Optional:
			return nil, p.wait
		}
		all = append(all, some...)
	}
	return distinct(all), nil
}

// A problem is why what an object refers to can't be used. Without a wait it is what the object can do
// without.
type problem struct {
	reason, message string // of the condition; empty if there is no problem
	wait            error
}

func (o *Options[T, R]) problem(req *step.Request[T], suffix, message, waitsFor string) problem {
	err := ctrlkit.Wait(waitsFor)
	return problem{kindOf(req.Client, newObject[R]()) + suffix, message, err}
}

// deleted is the problem of an object that is being deleted and must not be used any more.
func (o *Options[T, R]) deleted(req *step.Request[T], obj R) problem {
	what := nameOf(req.Client, obj) + ", which is being deleted, to be created again"
	return o.problem(req, "NotReady", "waiting for "+what, what)
}

// mark marks the condition.
func (r *Reference[T, R]) mark(req *step.Request[T], p problem) {
	switch {
	case req.Conditions == nil:
	case p.wait != nil:
		req.Conditions.MarkUnhealthy(r.condition, condition.SeverityInfo, p.reason, p.message)
	case p.reason != "":
		req.Conditions.MarkHealthy(r.condition, p.reason, p.message)
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
