// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

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
	"github.com/ctrlkit/ctrlkit/step"
)

const (
	// publishFromAnnotation, on a Namespace, names the namespaces, separated by commas, or "*", of
	// objects whose details may be published to it. Those of cluster-scoped objects need "*".
	publishFromAnnotation = "publish.ctrlkit.dev/from"
	// onceAnnotation, on a Secret, names the details that were known only once, with the keys that have
	// them: "password=password,token=once.token".
	onceAnnotation = "external.ctrlkit.dev/once"
)

// reasonWrongTarget is the reason of a failure: a target is invalid, or its Namespace has not consented.
const reasonWrongTarget = "WrongTarget"

// A Publisher writes what the users of an object need to reach what it stands for, such as an address
// and a password, to Secrets and ConfigMaps. The values are in no message, no log and no journal.
//
// Put its [Publisher.Step] into the engine, and give the publisher to Options.Publish, or have another
// step of the engine call [Publisher.Publish]. It is not changed after that, and safe for concurrent
// use.
type Publisher[T client.Object] struct {
	// Targets returns where the details of an object are published. What it does not return any more
	// is deleted. It must not depend on anything but the object.
	Targets func(obj T) []Target

	// Public names the details that may be in a ConfigMap. A template of one that uses others is
	// refused. Without any no target is a ConfigMap, and none is watched.
	Public []string

	// Elsewhere says that some targets are in other namespaces. The engine then puts its finalizer on
	// each object, and the step deletes what is there.
	Elsewhere bool

	inEngine atomic.Pointer[publishing[T]]
}

// A publishing is what writes the targets, by package apply.
type publishing[T client.Object] struct {
	children step.Step[T]
	wanted   step.Key[*apply.Set]
}

// Step returns the step of the engine that watches the targets, and deletes those in other
// namespaces. It publishes nothing by itself.
func (p *Publisher[T]) Step(name string) step.Step[T] {
	if p.Targets == nil {
		return step.Step[T]{Name: name, Err: fmt.Errorf("the publisher %s has no Targets", name)}
	}
	kinds := []client.Object{&corev1.Secret{}}
	if p.publishesConfigMaps() {
		kinds = append(kinds, &corev1.ConfigMap{})
	}
	all := []apply.SetOption{apply.Owns(kinds...)}
	if p.Elsewhere {
		all = append(all, apply.Tracks(kinds...))
	}
	wanted := step.NewKey[*apply.Set]("what " + name + " publishes")
	children := apply.Children(name, func(_ context.Context, req *step.Request[T], want *apply.Set) error {
		set, ok := step.Lookup(req, wanted)
		if !ok {
			return errors.New("nothing was published")
		}
		*want = *set
		return nil
	}, all...)
	p.inEngine.Store(&publishing[T]{children, wanted})
	return step.Step[T]{
		Name: name, Cleanup: children.Cleanup, Uses: p.uses(), Err: children.Err,
		Watches: func() []step.Watch { return p.watches(children.Watches()) },
	}
}

func (p *Publisher[T]) publishesConfigMaps() bool { return len(p.Public) > 0 }

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
	by := p.inEngine.Load()
	if by == nil {
		return wrongTarget(errors.New("the publisher is not in the engine"), "this is a bug in the operator: give Publisher.Step to step.New")
	}
	w := newPublication(req, details)
	w.public = p.Public
	for _, t := range p.Targets(req.Object) {
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
		by.keepFirst(ctx, req, w)
	}
	objects, lacks := w.render()
	err := errors.Join(by.apply(ctx, req, w, objects), w.refusals())
	if !details.partial {
		err = errors.Join(err, w.unpublished(lacks))
	}
	return failure.AppendRemedy(err)
}

// keepFirst writes what is known only now to a Secret that keeps it, before anything else, which may
// fail: to the first that can be written. What fails is tried again with all others.
func (by *publishing[T]) keepFirst(ctx context.Context, req *step.Request[T], w *publication) {
	chosen := w.keeper
	for _, s := range w.keepers() {
		w.keeper = s
		objects, _ := w.render()
		if objects[s] != nil && by.apply(ctx, req, w, map[*site]client.Object{s: objects[s]}) == nil {
			return
		}
	}
	w.keeper = chosen
}

// apply makes objects as they should be. All other sites are left as they are.
func (by *publishing[T]) apply(ctx context.Context, req *step.Request[T], w *publication, objects map[*site]client.Object) error {
	var set apply.Set
	for _, s := range w.sites {
		if obj := objects[s]; obj != nil {
			set.Add(obj)
		} else if s.Secret+s.ConfigMap != "" {
			set.Leave(s.ref())
		}
	}
	step.Put(req, by.wanted, &set)
	err := by.children.Do(ctx, req)
	if _, failed := ctrlkit.IgnoreExit(ctrl.Result{}, err); failed != nil || len(ctrlkit.Waits(err)) > 0 {
		return err
	}
	return nil
}

// publishSecret publishes details to one Secret of an object, as [Publisher.Publish] does, without a publisher:
// the engine has to watch Secrets that the object owns. A Secret of another name stays until the
// object is gone. It returns the Secret as it is in the cluster, nil if there is nothing to publish.
func publishSecret[T client.Object](ctx context.Context, req *step.Request[T], name string, details Details) (client.Object, error) {
	w := newPublication(req, details)
	s := &site{Target: Target{Secret: name, Namespace: req.Object.GetNamespace()}, own: true}
	w.sites = []*site{s}
	if err := w.recall(ctx, details.Once); err != nil || len(w.once)+len(w.values) == 0 {
		return nil, err
	}
	objects, _ := w.render()
	return objects[s], failure.AppendRemedy(apply.Ensure(ctx, req, objects[s]))
}

func newPublication[T client.Object](req *step.Request[T], details Details) *publication {
	return &publication{client: req.Client, owner: req.Object, manager: req.FieldOwner(), values: details.Values, first: details.first}
}

func wrongTarget(err error, remedy string) error {
	return failure.Terminal(err, reasonWrongTarget, remedy)
}

// check returns an error if nothing may be published to a site.
func (p *Publisher[T]) check(ctx context.Context, req *step.Request[T], w *publication, s *site) error {
	if err := s.check(); err != nil {
		return wrongTarget(err, "correct the target")
	}
	switch {
	case slices.ContainsFunc(w.sites, func(other *site) bool { return other.ref() == s.ref() }):
		return wrongTarget(fmt.Errorf("%s is a target twice", s.name()), "give one of them another name")
	case s.Namespace == "":
		return wrongTarget(fmt.Errorf("%s has no namespace, and neither has the object", s.name()), "name the namespace of the target")
	case s.ConfigMap != "" && !p.publishesConfigMaps():
		return wrongTarget(fmt.Errorf("%s is not declared", s.name()), "this is a bug in the operator: name in Publisher.Public what may be in a ConfigMap")
	case s.own:
		return nil
	case !p.Elsewhere:
		return wrongTarget(fmt.Errorf("%s is in another namespace than the object", s.name()), "use one in the namespace of the object")
	}
	namespace := &corev1.Namespace{}
	err := req.Client.Get(ctx, client.ObjectKey{Name: s.Namespace}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the Namespace of %s: %w", s.name(), err)
	}
	own := req.Object.GetNamespace()
	consent := namespace.Annotations[publishFromAnnotation]
	from := strings.Split(consent, ",")
	switch {
	case err != nil || !slices.ContainsFunc(from, func(name string) bool { name = strings.TrimSpace(name); return name == "*" || name == own && own != "" }):
		remedy := fmt.Sprintf("have its owner set the annotation %s of the Namespace %s to %q", publishFromAnnotation, s.Namespace, cmp.Or(own, "*"))
		if consent != "" {
			remedy = fmt.Sprintf("have its owner add %q to the annotation %s of the Namespace %s, after a comma", cmp.Or(own, "*"), publishFromAnnotation, s.Namespace)
		}
		return wrongTarget(fmt.Errorf("%s: its Namespace does not allow it", s.name()), remedy)
	case !namespace.DeletionTimestamp.IsZero():
		return ctrlkit.Wait("Namespace " + s.Namespace + " to be gone, which is being deleted, for " + s.name())
	}
	return nil
}

// keeps reports whether an object has a Secret that keeps what is known only once.
func (p *Publisher[T]) keeps(obj T) bool {
	return slices.ContainsFunc(p.Targets(obj), func(t Target) bool { return t.Secret != "" })
}

func (p *Publisher[T]) watches(all []step.Watch) []step.Watch {
	if p.Elsewhere {
		all = append(all, step.Watch{Object: &corev1.Namespace{}, NamedBy: p.namespaces, Changed: consentChanged})
	}
	return indexed(all)
}

// namespaces returns the other namespaces to which an object publishes.
func (p *Publisher[T]) namespaces(obj client.Object) (keys []client.ObjectKey) {
	for _, t := range p.Targets(obj.(T)) { //nolint:errcheck // of the engine
		if t.Namespace != "" && t.Namespace != obj.GetNamespace() {
			keys = append(keys, client.ObjectKey{Name: t.Namespace})
		}
	}
	return keys
}

func consentChanged(before, now client.Object) bool {
	return before == nil || now == nil || before.GetAnnotations()[publishFromAnnotation] != now.GetAnnotations()[publishFromAnnotation]
}

func (p *Publisher[T]) uses() []step.Use {
	verbs := []string{"create", "patch", "delete"}
	owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is the type
	all := []step.Use{
		{Object: &corev1.Secret{}, Verbs: verbs, By: "publishes details"},
		{Object: owner, Subresource: "finalizers", Verbs: []string{"update"}, By: "its Secrets block the deletion of their owner"},
	}
	if p.publishesConfigMaps() {
		all = append(all, step.Use{Object: &corev1.ConfigMap{}, Verbs: verbs, By: "publishes details"})
	}
	if p.Elsewhere {
		all = append(all, step.Use{Object: &corev1.Namespace{}, Verbs: []string{"get", "list", "watch"}, By: "asks whether a Namespace allows publishing to it"})
	}
	return all
}
