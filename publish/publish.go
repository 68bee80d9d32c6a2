// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/permission"
	"github.com/ctrlkit/ctrlkit/step"
)

const (
	// FromAnnotation, on a Namespace, names the namespaces, separated by commas, or "*", of objects whose
	// details may be published to it. Those of cluster-scoped objects need "*".
	FromAnnotation = "publish.ctrlkit.dev/from"
	// OnceAnnotation, on a Secret, names the details that were known only once, with the keys that have
	// them: "password=password,token=once.token".
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
//     reason Unpublished, names the key and the detail, and how a person provides it.
//   - A target to which nothing may be published keeps what it has, and stops no other: all errors
//     are joined, and come after all else is written.
//   - What belongs to others is left alone: see [apply.Children].
func (p *Publisher[T]) Publish(ctx context.Context, req *step.Request[T], details Details) error {
	if !p.inEngine.Load() {
		return wrong(fmt.Errorf("publisher %q is not in the engine", p.children.Name), "this is a bug in the operator: give Publisher.Step to step.New")
	}
	w := newPublication(req, details)
	w.public = p.options.Public
	for _, t := range p.options.Targets(req.Object) {
		if t.Namespace == "" {
			t.Namespace = req.Object.GetNamespace()
		}
		s := &site{Target: t, own: t.Namespace == req.Object.GetNamespace()}
		s.refused = p.check(ctx, req, w, s)
		w.sites = append(w.sites, s)
	}
	if err := w.recall(ctx, details.Once); err != nil {
		return err
	}
	if len(w.once)+len(w.values) == 0 {
		return failure.AppendRemedy(w.refusals())
	}
	if len(details.Once) > 0 && len(w.sites) > 1 {
		p.keepFirst(ctx, req, w)
	}
	objects, lacks := w.render()
	err := errors.Join(p.apply(ctx, req, w, objects), w.refusals())
	if !details.Partial {
		err = errors.Join(err, w.unpublished(lacks))
	}
	return failure.AppendRemedy(err)
}

// keepFirst writes what is known only now to a Secret that keeps it, before anything else, which may
// fail: to the first that can be written. What fails is tried again with all others.
func (p *Publisher[T]) keepFirst(ctx context.Context, req *step.Request[T], w *publication) {
	chosen := w.keeper
	for _, s := range w.keepers() {
		w.keeper = s
		objects, _ := w.render()
		if objects[s] != nil && p.apply(ctx, req, w, map[*site]client.Object{s: objects[s]}) == nil {
			return
		}
	}
	w.keeper = chosen
}

// apply makes objects as they should be. All other sites are left as they are.
func (p *Publisher[T]) apply(ctx context.Context, req *step.Request[T], w *publication, objects map[*site]client.Object) error {
	var set apply.Set
	for _, s := range w.sites {
		if obj := objects[s]; obj != nil {
			set.Add(obj)
		} else if s.Secret+s.ConfigMap != "" {
			set.Leave(s.ref())
		}
	}
	step.Put(req, p.wanted, &set)
	err := p.children.Do(ctx, req)
	if _, failed := ctrlkit.IgnoreExit(ctrl.Result{}, err); failed != nil || len(ctrlkit.Waits(err)) > 0 {
		return err
	}
	return nil
}

// Secret publishes details to one Secret of an object, as [Publisher.Publish] does, without a publisher:
// the engine has to watch Secrets that the object owns. A Secret of another name stays until the
// object is gone.
func Secret[T client.Object](ctx context.Context, req *step.Request[T], name string, details Details) error {
	w := newPublication(req, details)
	s := &site{Target: Target{Secret: name, Namespace: req.Object.GetNamespace()}, own: true}
	w.sites = []*site{s}
	if err := w.recall(ctx, details.Once); err != nil || len(w.once)+len(w.values) == 0 {
		return err
	}
	objects, _ := w.render()
	return failure.AppendRemedy(apply.Ensure(ctx, req, objects[s]))
}

func newPublication[T client.Object](req *step.Request[T], details Details) *publication {
	return &publication{client: req.Client, owner: req.Object, manager: req.FieldOwner(), values: details.Values}
}

func wrong(err error, remedy string) error {
	return failure.Terminal(err, ReasonWrongTarget, remedy)
}

// check returns an error if nothing may be published to a site.
func (p *Publisher[T]) check(ctx context.Context, req *step.Request[T], w *publication, s *site) error {
	if err := s.check(); err != nil {
		return wrong(err, "correct the target")
	}
	switch {
	case slices.ContainsFunc(w.sites, func(other *site) bool { return other.ref() == s.ref() }):
		return wrong(fmt.Errorf("%s is a target twice", s.name()), "give one of them another name")
	case s.Namespace == "":
		return wrong(fmt.Errorf("%s has no namespace, and neither has the object", s.name()), "name the namespace of the target")
	case s.ConfigMap != "" && !p.options.ConfigMaps:
		return wrong(fmt.Errorf("%s is not declared", s.name()), "this is a bug in the operator: set publish.Options.ConfigMaps")
	case s.own:
		return nil
	case !p.options.Elsewhere:
		return wrong(fmt.Errorf("%s is in another namespace than the object", s.name()), "use one in the namespace of the object")
	}
	namespace := &corev1.Namespace{}
	err := req.Client.Get(ctx, client.ObjectKey{Name: s.Namespace}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the Namespace of %s: %w", s.name(), err)
	}
	own := req.Object.GetNamespace()
	consent := namespace.Annotations[FromAnnotation]
	from := strings.Split(consent, ",")
	switch {
	case err != nil || !slices.ContainsFunc(from, func(name string) bool { name = strings.TrimSpace(name); return name == "*" || name == own && own != "" }):
		remedy := fmt.Sprintf("have its owner set the annotation %s of the Namespace %s to %q", FromAnnotation, s.Namespace, cmp.Or(own, "*"))
		if consent != "" {
			remedy = fmt.Sprintf("have its owner add %q to the annotation %s of the Namespace %s, after a comma", cmp.Or(own, "*"), FromAnnotation, s.Namespace)
		}
		return wrong(fmt.Errorf("%s: its Namespace does not allow it", s.name()), remedy)
	case !namespace.DeletionTimestamp.IsZero():
		return ctrlkit.Wait("Namespace " + s.Namespace + " to be gone, which is being deleted, for " + s.name())
	}
	return nil
}

// Keeps reports whether an object has a Secret that keeps what is known only once.
func (p *Publisher[T]) Keeps(obj T) bool {
	return slices.ContainsFunc(p.options.Targets(obj), func(t Target) bool { return t.Secret != "" })
}

// Step returns the step of the engine that watches the targets, and deletes those in other
// namespaces. It publishes nothing by itself.
func (p *Publisher[T]) Step() step.Step[T] {
	p.inEngine.Store(true)
	return step.Step[T]{Name: p.children.Name, Cleanup: p.children.Cleanup, Watches: p.watches, Uses: p.uses()}
}

func (p *Publisher[T]) watches() []step.Watch {
	all := p.children.Watches()
	if p.options.Elsewhere {
		all = append(all, step.Watch{Object: &corev1.Namespace{}, NamedBy: p.namespaces, Changed: consentChanged})
	}
	return all
}

// namespaces returns the other namespaces to which an object publishes.
func (p *Publisher[T]) namespaces(obj client.Object) (keys []client.ObjectKey) {
	for _, t := range p.options.Targets(obj.(T)) { //nolint:errcheck // of the engine
		if t.Namespace != "" && t.Namespace != obj.GetNamespace() {
			keys = append(keys, client.ObjectKey{Name: t.Namespace})
		}
	}
	return keys
}

func consentChanged(before, now client.Object) bool {
	return before == nil || now == nil || before.GetAnnotations()[FromAnnotation] != now.GetAnnotations()[FromAnnotation]
}

func (p *Publisher[T]) uses() []permission.Use {
	verbs := []string{"create", "patch", "delete"}
	owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is the type
	all := []permission.Use{
		{Object: &corev1.Secret{}, Verbs: verbs, By: "publishes details"},
		{Object: owner, Subresource: "finalizers", Verbs: []string{"update"}, By: "its Secrets block the deletion of their owner"},
	}
	if p.options.ConfigMaps {
		all = append(all, permission.Use{Object: &corev1.ConfigMap{}, Verbs: verbs, By: "publishes details"})
	}
	if p.options.Elsewhere {
		all = append(all, permission.Use{Object: &corev1.Namespace{}, Verbs: []string{"get", "list", "watch"}, By: "asks whether a Namespace allows publishing to it"})
	}
	return all
}
