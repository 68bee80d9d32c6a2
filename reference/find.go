// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/step"
)

// reasonAnotherNamespace is the reason of the failure of an object that refers to another
// namespace, although neither Options.AllNamespaces nor Options.Allowed permits that.
const reasonAnotherNamespace = "AnotherNamespace"

// reasonInvalidTarget is the reason of the failure of an object one of whose targets has fields that do
// not go together.
const reasonInvalidTarget = "InvalidTarget"

// resolve returns what the targets of an object are, and the problem of all that can't be used.
func (r *Reference[T, R]) resolve(ctx context.Context, req *step.Request[T], chosen record) ([]R, problem, error) {
	var found []R
	var missing, spared []problem
	targets := r.targets(req.Object)
	for _, target := range targets {
		if err := r.check(target, len(targets)); err != nil {
			return nil, problem{}, failure.Terminal(err, reasonInvalidTarget, "")
		}
		some, p, err := r.find(ctx, req, target, chosen)
		switch {
		case err != nil:
			return nil, problem{}, err
		case p.wait != nil && target.Optional:
			p.message = "optional: " + p.message
			spared = append(spared, p)
		case p.wait == nil && p.reason != "":
			spared = append(spared, p)
		case p.wait != nil:
			missing = append(missing, p)
		}
		found = append(found, some...)
	}
	if len(missing) > 0 {
		return nil, join(missing), nil
	}
	p := join(spared)
	p.wait = nil
	return distinct(found), p, nil
}

// join returns one problem for several, with the reason of the first one.
func join(all []problem) problem {
	if len(all) == 0 {
		return problem{}
	}
	var messages []string
	var waits []error
	for _, p := range all {
		messages, waits = append(messages, p.message), append(waits, p.wait)
	}
	return problem{all[0].reason, firstOf(messages), errors.Join(waits...)}
}

// firstOf joins the first texts, and says how many more there are.
func firstOf(texts []string) string {
	text := strings.Join(texts[:min(3, len(texts))], "; ")
	if more := len(texts) - 3; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// distinct returns objects in their order, each once.
func distinct[R client.Object](all []R) []R {
	seen := make(map[types.UID]bool, len(all))
	return slices.DeleteFunc(all, func(obj R) bool {
		again := seen[obj.GetUID()]
		seen[obj.GetUID()] = true
		return again
	})
}

// find returns what one target is, or why it can't be used. An object that is in use already may be
// unready or being deleted: it stays for this object.
func (r *Reference[T, R]) find(ctx context.Context, req *step.Request[T], target Target, chosen record) ([]R, problem, error) {
	if target.Keep {
		if kept, err := r.kept(ctx, req, chosen); err != nil || len(kept) > 0 {
			return kept, problem{}, err
		}
	}
	found, p, err := r.lookUp(ctx, req, target, chosen)
	if err != nil || p.wait != nil || target.Name == "" || slices.Contains(r.recordOf(req.Object).all(), useOf(found[0])) {
		return found, p, err
	}
	if !found[0].GetDeletionTimestamp().IsZero() {
		return nil, r.deleted(req, found[0]), nil
	}
	if why := r.NotReady(found[0]); why != "" {
		what := nameOf(req.Client, found[0]) + " to be ready: " + why
		return nil, r.problem(req, "NotReady", "waiting for "+what, what), nil
	}
	return found, problem{}, nil
}

// kept returns the objects that were selected before, and that are still there.
func (r *Reference[T, R]) kept(ctx context.Context, req *step.Request[T], chosen record) ([]R, error) {
	var all []R
	for _, u := range chosen.current {
		some, p, err := r.lookUp(ctx, req, Target{Namespace: u.key.Namespace, Name: u.key.Name}, chosen)
		switch {
		case err != nil:
			return nil, err
		case p.wait == nil && useOf(some[0]) == u:
			all = append(all, some...)
		}
	}
	return all, nil
}

// place completes the namespace of a target.
func (o *Options[T, R]) place(req *step.Request[T], target *Target) error {
	namespaced, err := req.Client.IsObjectNamespaced(newObject[R]())
	own := req.Object.GetNamespace()
	to := "namespace " + target.Namespace
	if target.AnyNamespace {
		to = "all namespaces"
	}
	switch {
	case err == nil && !namespaced:
		target.Namespace = ""
	case (target.AnyNamespace || target.Namespace != "" && target.Namespace != own) && !o.elsewhere():
		return failure.Terminal(fmt.Errorf("the reference %s is to %s, and may only be to %s", o.Name, to, own), reasonAnotherNamespace, "")
	case target.AnyNamespace:
		target.Namespace = ""
	case target.Namespace == "":
		target.Namespace = own
	}
	return nil
}

// mayRefer reports whether the objects in a namespace may refer to another one.
func (o *Options[T, R]) mayRefer(namespace string, to R) bool {
	switch {
	case to.GetNamespace() == "" || to.GetNamespace() == namespace:
		return true
	case o.Allowed != nil:
		return o.Allowed(to, namespace)
	}
	return o.AllNamespaces
}

// lookUp returns the object of a name, or what labels select.
func (r *Reference[T, R]) lookUp(ctx context.Context, req *step.Request[T], target Target, chosen record) ([]R, problem, error) {
	if err := r.place(req, &target); err != nil {
		return nil, problem{}, err
	}
	if target.Name == "" {
		return r.selected(ctx, req, target, chosen)
	}
	key := client.ObjectKey{Namespace: target.Namespace, Name: target.Name}
	what := strings.TrimPrefix(key.String(), "/")
	obj, err := step.GetOrWait[R](ctx, req, key)
	waits := ctrlkit.Waits(err)
	kind := kindOf(req.Client, newObject[R]())
	asks := r.Allowed != nil && target.Namespace != "" && target.Namespace != req.Object.GetNamespace()
	switch {
	case asks && (len(waits) > 0 && waits[0].Every == 0 || err == nil && !r.mayRefer(req.Object.GetNamespace(), obj)):
		err := ctrlkit.Wait(kind + " " + what)
		text := fmt.Sprintf("%s %s does not exist, or does not allow references from namespace %s", kind, what, req.Object.GetNamespace())
		return nil, problem{kind + "NotFound", text, err}, nil
	case len(waits) > 0:
		p := problem{kind + "NotFound", waits[0].For + " does not exist: create it", err}
		if waits[0].Every > 0 {
			p.message = "waiting for " + waits[0].For
		}
		return nil, p, nil
	case err == nil && obj.GetUID() == req.Object.GetUID():
		what := nameOf(req.Client, obj) + " not to refer to itself"
		return nil, r.problem(req, "NotFound", "it refers to itself", what), nil
	}
	return []R{obj}, problem{}, err
}

// selected returns the objects that labels select.
func (r *Reference[T, R]) selected(ctx context.Context, req *step.Request[T], target Target, chosen record) ([]R, problem, error) {
	all, err := references.List(ctx, req.Client, newObject[R](), client.InNamespace(target.Namespace), client.MatchingLabels(target.Labels))
	kind := kindOf(req.Client, newObject[R]())
	what := kind + " with the labels " + labels.FormatLabels(target.Labels)
	if target.Namespace != "" {
		what += " in namespace " + target.Namespace
	}
	switch {
	case meta.IsNoMatchError(err):
		wait := ctrlkit.Poll(what+", whose kind the API server does not have", time.Minute)
		return nil, problem{kind + "NotFound", "waiting for " + what, wait}, nil
	case err != nil:
		return nil, problem{}, fmt.Errorf("listing each %s: %w", what, err)
	}
	candidates := make([]R, 0, len(all))
	for _, item := range all {
		if obj, ok := item.(R); ok && obj.GetUID() != req.Object.GetUID() && r.mayRefer(req.Object.GetNamespace(), obj) {
			candidates = append(candidates, obj)
		}
	}
	slices.SortFunc(candidates, func(a, b R) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNamespace(), b.GetNamespace()))
	})
	found, p := r.choose(req, candidates, what, target.Every, chosen)
	return found, p, nil
}

// choose returns the candidate that is in use, or else the first one that can be used; or every one that
// is in use or can be used.
func (r *Reference[T, R]) choose(req *step.Request[T], candidates []R, what string, every bool, chosen record) ([]R, problem) {
	var usable, leaving []R
	var unready []string
	known, all := r.recordOf(req.Object).all(), usesOf(candidates)
	if i := slices.IndexFunc(chosen.all(), func(u use) bool { return slices.Contains(all, u) }); i >= 0 && !every {
		return candidates[slices.Index(all, chosen.all()[i]):][:1], problem{}
	}
	for _, obj := range candidates {
		used := every && slices.Contains(known, useOf(obj))
		why := "it is being deleted"
		if obj.GetDeletionTimestamp().IsZero() {
			why = r.NotReady(obj)
		}
		switch {
		case used && !obj.GetDeletionTimestamp().IsZero():
			leaving = append(leaving, obj)
		case used, why == "":
			usable = append(usable, obj)
		default:
			unready = append(unready, obj.GetName()+": "+why)
		}
	}
	if len(usable) == 0 {
		usable = leaving
	}
	text := what + " to be ready: " + firstOf(unready)
	switch {
	case len(usable) > 0 && !every:
		return usable[:1], problem{}
	case len(usable) > 0 && len(unready) > 0:
		return usable, problem{reason: kindOf(req.Client, newObject[R]()) + "NotReady", message: "waiting for each " + text}
	case len(usable) > 0:
		return usable, problem{}
	case len(unready) == 0:
		return nil, r.problem(req, "NotFound", "there is no "+what+": create one", "a "+what)
	}
	return nil, r.problem(req, "NotReady", "waiting for a "+text, "a "+text)
}
