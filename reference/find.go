// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/references"
	"github.com/ctrlkit/ctrlkit/step"
)

// ReasonAnotherNamespace is the reason of the failure of an object that refers to another
// namespace, although Options.AllNamespaces does not allow that.
const ReasonAnotherNamespace = "AnotherNamespace"

// find returns what an object refers to, or why it can't be used. What the object uses already is
// neither asked whether it is ready nor whether it is being deleted: it stays for this object.
func (r *Reference[T, R]) find(ctx context.Context, req *step.Request[T], target Target) (R, problem, error) {
	obj, p, err := r.lookUp(ctx, req, target)
	if err != nil || p.reason != "" || slices.Contains(r.uses(req.Object), useOf(obj)) {
		return obj, p, err
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return obj, r.deleted(req, obj), nil
	}
	if why := r.NotReady(obj); why != "" {
		what := nameOf(req.Client, obj) + " to be ready: " + why
		return obj, r.problem(req, "NotReady", "waiting for "+what, what), nil
	}
	return obj, problem{}, nil
}

// lookUp returns the object of a name, or the one that labels select.
func (r *Reference[T, R]) lookUp(ctx context.Context, req *step.Request[T], target Target) (R, problem, error) {
	var none R
	namespaced, err := req.Client.IsObjectNamespaced(newObject[R]())
	switch own := req.Object.GetNamespace(); {
	case err == nil && !namespaced:
		target.Namespace = ""
	case target.Namespace == "":
		target.Namespace = own
	case target.Namespace != own && !r.AllNamespaces:
		err := fmt.Errorf("the reference %s is to namespace %s, and may only be to %s", r.Name, target.Namespace, own)
		return none, problem{}, failure.Mark(err, failure.WithClass(failure.ClassTerminal), failure.WithReason(ReasonAnotherNamespace))
	}
	if target.Name == "" {
		return r.selected(ctx, req, target)
	}
	key := client.ObjectKey{Namespace: target.Namespace, Name: target.Name}
	obj, err := step.GetOrWait[R](ctx, req, key)
	waits := ctrlkit.Waits(err)
	switch {
	case len(waits) > 0:
		p := problem{kindOf(req.Client, newObject[R]()) + "NotFound", waits[0].For + " does not exist: create it", err}
		if waits[0].Every > 0 {
			p.message = "waiting for " + waits[0].For
		}
		return none, p, nil
	case err == nil && obj.GetUID() == req.Object.GetUID():
		what := nameOf(req.Client, obj) + " not to refer to itself"
		return none, r.problem(req, "NotFound", "it refers to itself", what), nil
	}
	return obj, problem{}, err
}

// selected returns the object that labels select.
func (r *Reference[T, R]) selected(ctx context.Context, req *step.Request[T], target Target) (R, problem, error) {
	var none R
	all, err := references.List(ctx, req.Client, newObject[R](), client.InNamespace(target.Namespace), client.MatchingLabels(target.Labels))
	kind := kindOf(req.Client, newObject[R]())
	what := kind + " with the labels " + labels.FormatLabels(target.Labels)
	if target.Namespace != "" {
		what += " in namespace " + target.Namespace
	}
	switch {
	case meta.IsNoMatchError(err):
		_, wait := ctrlkit.PollFor(what+", whose kind the API server does not have", time.Minute)
		return none, problem{kind + "NotFound", "waiting for " + what, wait}, nil
	case err != nil:
		return none, problem{}, fmt.Errorf("listing each %s: %w", what, err)
	}
	candidates := make([]R, 0, len(all))
	for _, item := range all {
		if obj, ok := item.(R); ok && obj.GetUID() != req.Object.GetUID() {
			candidates = append(candidates, obj)
		}
	}
	slices.SortFunc(candidates, func(a, b R) int {
		if order := a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time); order != 0 {
			return order
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	return r.choose(req, candidates, what)
}

// choose returns the candidate that is in use, or else the first one that can be used.
func (r *Reference[T, R]) choose(req *step.Request[T], candidates []R, what string) (R, problem, error) {
	var none R
	for _, u := range r.uses(req.Object) {
		for _, obj := range candidates {
			if useOf(obj) == u {
				return obj, problem{}, nil
			}
		}
	}
	var unready []string
	for _, obj := range candidates {
		why := "it is being deleted"
		if obj.GetDeletionTimestamp().IsZero() {
			why = r.NotReady(obj)
		}
		if why == "" {
			return obj, problem{}, nil
		}
		unready = append(unready, obj.GetName()+": "+why)
	}
	if len(unready) == 0 {
		return none, r.problem(req, "NotFound", "there is no "+what+": create one", "a "+what), nil
	}
	text := what + " to be ready: " + strings.Join(unready[:min(3, len(unready))], "; ")
	if more := len(unready) - 3; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return none, r.problem(req, "NotReady", "waiting for a "+text, "a "+text), nil
}
