// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/permission"
	"github.com/ctrlkit/ctrlkit/step"
)

const (
	// FromAnnotation, on a Namespace, names the namespaces, separated by commas, or "*", of objects whose
	// details may be published to it. Those of cluster-scoped objects need "*".
	FromAnnotation = "publish.ctrlkit.dev/from"
	// OnceAnnotation, on a Secret, names the keys that were known only once.
	OnceAnnotation = "external.ctrlkit.dev/once"
)

// Reasons of failures.
const (
	ReasonUnpublished = "Unpublished" // a key needs a detail that is not known, yet
	ReasonWrongTarget = "WrongTarget" // a target is invalid, or its Namespace has not consented
)

// Options configure [New].
type Options[T client.Object] struct {
	// Targets returns where the details of an object are published. What it does not return any more
	// is deleted. It must not depend on anything but the object.
	Targets func(obj T) []Target
	// ConfigMaps says that some targets are ConfigMaps, which are watched then.
	ConfigMaps bool
	// Public names the details that may be in a ConfigMap. A template of one that uses others is
	// refused.
	Public []string
	// Elsewhere says that some targets are in other namespaces. The engine then puts its finalizer on
	// each object, and the step deletes what is there.
	Elsewhere bool
}

// A Publisher publishes the details of objects. It is made by [New], and safe for concurrent use.
type Publisher[T client.Object] struct {
	options  Options[T]
	children step.Step[T] // by package apply
	wanted   step.Key[*apply.Set]
	inEngine atomic.Bool
}

// New returns a publisher. Put its [Publisher.Step] into the engine, and have a step of the engine
// call [Publisher.Publish].
func New[T client.Object](name string, options Options[T]) *Publisher[T] {
	p := &Publisher[T]{options: options, wanted: step.NewKey[*apply.Set]("what " + name + " publishes")}
	kinds := []client.Object{&corev1.Secret{}}
	if options.ConfigMaps {
		kinds = append(kinds, &corev1.ConfigMap{})
	}
	all := []apply.SetOption{apply.Owns(kinds...)}
	if options.Elsewhere {
		all = append(all, apply.Tracks(kinds...))
	}
	p.children = apply.Children(name, func(_ context.Context, req *step.Request[T], want *apply.Set) error {
		set, ok := step.Lookup(req, p.wanted)
		if !ok {
			return errors.New("nothing was published")
		}
		*want = *set
		return nil
	}, all...)
	return p
}

// Publish writes details to the targets of an object, and deletes what is no target any more. It is
// called in a step, when the details are known: what is not known keeps what was published. Without
// a change it costs no request.
//
//   - A Secret that has no chosen keys has exactly the details, and those which were known once.
//   - A chosen key whose template needs a detail that is not known keeps its value. The error, of the
//     reason Unpublished, names the key and the detail, and comes after all else is written.
//   - What belongs to others is left alone: see [apply.Children].
func (p *Publisher[T]) Publish(ctx context.Context, req *step.Request[T], details Details) error {
	if !p.inEngine.Load() {
		return wrong(fmt.Errorf("publisher %q is not in the engine", p.children.Name()), "this is a bug in the operator: give Publisher.Step to step.New")
	}
	targets := p.options.Targets(req.Object)
	for i := range targets {
		if err := p.check(ctx, req, &targets[i]); err != nil {
			return err
		}
	}
	once, err := recall(ctx, req, targets, details.Once)
	if err != nil || len(once)+len(details.Values) == 0 {
		return err
	}
	var set apply.Set
	lacks, err := renderAll(ctx, req, targets, details.Values, once, p.options.Public, func(obj client.Object) error {
		obj.SetLabels(withEntry(obj.GetLabels(), ofLabel, string(req.Object.GetUID())))
		set.Add(obj)
		return nil
	})
	if err != nil {
		return err
	}
	step.Put(req, p.wanted, &set)
	if result, err := p.children.Do(ctx, req); err != nil {
		if _, failed := ctrlkit.IgnoreExit(result, err); failed != nil || len(ctrlkit.Waits(err)) > 0 {
			return err
		}
	}
	if details.Partial {
		return nil
	}
	return unpublished(lacks)
}

// ofLabel, on what a publisher writes, has the UID of the object.
const ofLabel = "publish.ctrlkit.dev/of"

// Secret publishes details to one Secret of an object, as [Publisher.Publish] does, without a publisher:
// the engine has to watch Secrets that the object owns. A Secret of another name stays until the
// object is gone.
func Secret[T client.Object](ctx context.Context, req *step.Request[T], name string, details Details) error {
	targets := []Target{{Secret: name, Namespace: req.Object.GetNamespace()}}
	once, err := recall(ctx, req, targets, details.Once)
	if err != nil || len(once)+len(details.Values) == 0 {
		return err
	}
	_, err = renderAll(ctx, req, targets, details.Values, once, nil, func(obj client.Object) error { return step.EnsureChild(ctx, req, obj) })
	return err
}

// renderAll makes the objects of all targets. What was known once is kept in the first Secret.
func renderAll[T client.Object](ctx context.Context, req *step.Request[T], targets []Target, values, once map[string][]byte, public []string, do func(client.Object) error) ([]lack, error) {
	all := maps.Clone(once)
	if all == nil {
		all = make(map[string][]byte, len(values))
	}
	maps.Copy(all, values) // an older password does not work any more, and the system knows the newer one
	var lacks []lack
	kept := false
	for i := range targets {
		t := &targets[i]
		keep := map[string][]byte(nil)
		if t.Secret != "" && !kept {
			keep, kept = once, true
		}
		former, err := t.former(ctx, req.Client, req.Object)
		if err != nil {
			return nil, err
		}
		obj, missing, err := t.render(all, public, keep, former)
		if err != nil {
			return nil, wrong(err, "correct the target")
		}
		if t.ConfigMap != "" {
			for _, m := range missing {
				if _, secret := all[m.detail]; secret {
					return nil, wrong(fmt.Errorf("%s, which may not be in a ConfigMap", m), "name it in publish.Options.Public, or publish it to a Secret")
				}
			}
		}
		lacks = append(lacks, missing...)
		if err := do(obj); err != nil {
			return nil, err
		}
	}
	return lacks, nil
}

func unpublished(lacks []lack) error {
	if len(lacks) == 0 {
		return nil
	}
	texts := make([]string, len(lacks))
	for i, l := range lacks {
		texts[i] = l.String()
	}
	return failure.Mark(errors.New(strings.Join(texts, "; ")+", which is not known"), failure.WithReason(ReasonUnpublished),
		failure.WithRemedy("if the system never returns it, remove the key from the target"))
}

func wrong(err error, remedy string) error {
	return failure.Mark(err, failure.WithClass(failure.ClassTerminal), failure.WithSeverity(condition.SeverityError),
		failure.WithReason(ReasonWrongTarget), failure.WithRemedy(remedy))
}

// check completes a target, and returns an error if nothing may be published to it.
func (p *Publisher[T]) check(ctx context.Context, req *step.Request[T], t *Target) error {
	own := req.Object.GetNamespace()
	if t.Namespace == "" {
		t.Namespace = own
	}
	if err := t.check(); err != nil {
		return wrong(err, "correct the target")
	}
	switch {
	case t.ConfigMap != "" && !p.options.ConfigMaps:
		return wrong(fmt.Errorf("%s is not declared", t.name()), "this is a bug in the operator: set publish.Options.ConfigMaps")
	case t.Namespace == own:
		return nil
	case !p.options.Elsewhere:
		return wrong(fmt.Errorf("%s is in another namespace than the object", t.name()), "use one in the namespace of the object")
	}
	namespace := &corev1.Namespace{}
	err := req.Client.Get(ctx, client.ObjectKey{Name: t.Namespace}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the Namespace of %s: %w", t.name(), err)
	}
	from := strings.Split(namespace.Annotations[FromAnnotation], ",")
	if err != nil || !slices.ContainsFunc(from, func(name string) bool { name = strings.TrimSpace(name); return name == "*" || name == own && own != "" }) {
		return wrong(fmt.Errorf("%s: its Namespace does not allow it", t.name()),
			fmt.Sprintf("have its owner set the annotation %s of the Namespace %s to %q", FromAnnotation, t.Namespace, cmp.Or(own, "*")))
	}
	return nil
}

// former returns the object of a target as the cache has it, nil if there is none of the object.
func (t *Target) former(ctx context.Context, c client.Client, owner client.Object) (client.Object, error) {
	var obj client.Object = &corev1.Secret{}
	if t.ConfigMap != "" {
		obj = &corev1.ConfigMap{}
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: t.Secret + t.ConfigMap}, obj)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", t.name(), err)
	case !isOf(obj, owner):
		return nil, nil
	}
	return obj, nil
}

func isOf(obj, owner client.Object) bool {
	return metav1.IsControlledBy(obj, owner) || metav1.GetControllerOf(obj) == nil && obj.GetLabels()[ofLabel] == string(owner.GetUID())
}

// recall returns what was known once: now, or before, by the Secret that keeps it. A Secret that is no
// target any more hands it over.
func recall[T client.Object](ctx context.Context, req *step.Request[T], targets []Target, now map[string][]byte) (map[string][]byte, error) {
	once := maps.Clone(now)
	first := slices.IndexFunc(targets, func(t Target) bool { return t.Secret != "" })
	if first < 0 {
		return once, nil
	}
	former, err := targets[first].former(ctx, req.Client, req.Object)
	if err != nil {
		return nil, err
	}
	keepers := []client.Object{former}
	if former == nil {
		list := &corev1.SecretList{}
		if err := req.Client.List(ctx, list, client.InNamespace(req.Object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("finding the former Secrets: %w", err)
		}
		keepers = nil
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], req.Object) {
				keepers = append(keepers, &list.Items[i])
			}
		}
		slices.SortStableFunc(keepers, func(a, b client.Object) int { // the last name has what is newest
			return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
		})
	}
	for _, keeper := range keepers {
		keys := keeper.GetAnnotations()[OnceAnnotation]
		if keys == "" {
			continue
		}
		for key := range strings.SplitSeq(keys, ",") {
			if value, ok := valueOf(keeper, key); ok && once[key] == nil {
				if once == nil {
					once = make(map[string][]byte, 1)
				}
				once[key] = value
			}
		}
	}
	return once, nil
}

func withEntry(all map[string]string, key, value string) map[string]string {
	all = maps.Clone(all)
	if all == nil {
		all = make(map[string]string, 1)
	}
	all[key] = value
	return all
}

// Keeps reports whether an object has a Secret that keeps what is known only once.
func (p *Publisher[T]) Keeps(obj T) bool {
	return slices.ContainsFunc(p.options.Targets(obj), func(t Target) bool { return t.Secret != "" })
}

// Step returns the step of the engine that watches the targets, and deletes those in other
// namespaces. It publishes nothing by itself.
func (p *Publisher[T]) Step() step.Step[T] {
	p.inEngine.Store(true)
	if cleaner, ok := p.children.(step.Cleaner[T]); ok && p.options.Elsewhere {
		return cleaning[T]{watching[T]{p}, cleaner}
	}
	return watching[T]{p}
}

type watching[T client.Object] struct{ *Publisher[T] }

var (
	_ step.Watcher[client.Object]     = watching[client.Object]{}
	_ step.UseDeclarer[client.Object] = watching[client.Object]{}
	_ step.Cleaner[client.Object]     = cleaning[client.Object]{}
)

// Name implements [step.Step].
func (w watching[T]) Name() string { return w.children.Name() }

// Do implements [step.Step].
func (watching[T]) Do(context.Context, *step.Request[T]) (ctrl.Result, error) {
	return ctrlkit.NoRequeue()
}

// Watches implements [step.Watcher].
func (w watching[T]) Watches() []step.Watch {
	all := w.children.(step.Watcher[T]).Watches() //nolint:errcheck // apply makes one
	if w.options.Elsewhere {
		all = append(all, step.Watch{Object: &corev1.Namespace{}, NamedBy: w.namespaces, Changed: consentChanged})
	}
	return all
}

// namespaces returns the other namespaces to which an object publishes.
func (w watching[T]) namespaces(obj client.Object) (keys []client.ObjectKey) {
	for _, t := range w.options.Targets(obj.(T)) { //nolint:errcheck // of the engine
		if t.Namespace != "" && t.Namespace != obj.GetNamespace() {
			keys = append(keys, client.ObjectKey{Name: t.Namespace})
		}
	}
	return keys
}

func consentChanged(before, now client.Object) bool {
	return before == nil || now == nil || before.GetAnnotations()[FromAnnotation] != now.GetAnnotations()[FromAnnotation]
}

// Uses implements [step.UseDeclarer].
func (w watching[T]) Uses() []permission.Use {
	verbs := []string{"create", "patch", "delete"}
	owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is the type
	all := []permission.Use{
		{Object: &corev1.Secret{}, Verbs: verbs, By: "publishes details"},
		{Object: owner, Subresource: "finalizers", Verbs: []string{"update"}, By: "its Secrets block the deletion of their owner"},
	}
	if w.options.ConfigMaps {
		all = append(all, permission.Use{Object: &corev1.ConfigMap{}, Verbs: verbs, By: "publishes details"})
	}
	if w.options.Elsewhere {
		all = append(all, permission.Use{Object: &corev1.Namespace{}, Verbs: []string{"get", "list", "watch"}, By: "asks whether a Namespace allows publishing to it"})
	}
	return all
}

// cleaning is the step of a publisher that publishes to other namespaces.
type cleaning[T client.Object] struct {
	watching[T]
	cleaner step.Cleaner[T]
}

// Cleanup implements [step.Cleaner].
func (c cleaning[T]) Cleanup(ctx context.Context, req *step.Request[T]) (ctrl.Result, error) {
	return c.cleaner.Cleanup(ctx, req)
}
