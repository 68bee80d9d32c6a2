// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
	"github.com/ctrlkit/ctrlkit/internal/show/difference"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Plan is what a set would change in the cluster. Its String is for people, its JSON for
// programs.
type Plan struct {
	Changes   []Change `json:"changes"`
	Unchanged int      `json:"unchanged"` // number of objects
}

// A Change is what would be done to one object.
type Change struct {
	Action Action `json:"action"`
	Object Ref    `json:"object"`
	Why    string `json:"why,omitempty"` // it is replaced, refused or waited for, or changed although the set has not
	Fields []Diff `json:"fields,omitempty"`
}

// An Action is what is done to an object.
type Action string

// The actions.
const (
	ActionCreate  Action = "create"
	ActionChange  Action = "change"
	ActionReplace Action = "replace" // it is deleted, and created again
	ActionPrune   Action = "prune"   // it has left the set, and is deleted
	ActionRefuse  Action = "refuse"  // it can't be written, or deleted: the reconcile would fail
	ActionWait    Action = "wait"    // it can't be written yet
)

// A Diff is a field that would change. Values of Secrets are hidden.
type Diff struct {
	Path string `json:"path"` // "spec.template.spec.containers[0].image"
	From any    `json:"from,omitempty"`
	To   any    `json:"to,omitempty"`
}

// PlanFor returns what a step of [Children] would do for the object of a request. It writes
// nothing: the API server answers a dry run of each creation and of each change. A test makes the
// request with ctrlkittest.NewRequest.
//
// The order of waves is not planned: the changes of all waves are in it. The error is that of the
// function which adds the objects, of a wrong set, or of a request that has failed.
func PlanFor[T client.Object](ctx context.Context, req *step.Request[T], children step.Step[T]) (*Plan, error) {
	plan, ok := children.Plan.(func(context.Context, *step.Request[T]) (*Plan, error))
	if !ok {
		return nil, fmt.Errorf("step %q is not made by apply.Children: only such steps have a plan", children.Name)
	}
	return plan(ctx, req)
}

func (c *children[T]) plan(ctx context.Context, req *step.Request[T]) (*Plan, error) {
	k, err := c.keeper(req)
	if err != nil {
		return nil, err
	}
	var set Set
	if err := c.want(ctx, req, &set); err != nil {
		return nil, err
	}
	return planOf(ctx, k, &set)
}

func planOf(ctx context.Context, k *keeper, set *Set) (*Plan, error) {
	items, err := k.items(set)
	if err == nil {
		err = k.readTracked(ctx)
	}
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	wanted := make(map[Ref]bool, len(items))
	for _, it := range items {
		wanted[it.Ref] = true
		if it.missing {
			p.Changes = append(p.Changes, Change{Action: ActionWait, Object: it.Ref, Why: it.definition()})
			continue
		}
		change, err := (&child{keeper: k, item: it}).plan(ctx)
		switch {
		case err != nil:
			return nil, err
		case change == nil:
			p.Unchanged++
		default:
			p.Changes = append(p.Changes, *change)
		}
	}
	leftovers, err := k.leftovers(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("finding what has left the set: %w", err)
	}
	p.Changes = append(p.Changes, k.planPrune(leftovers, p.Changes)...)
	return p, nil
}

// planPrune returns what would be done to what has left the set: nothing is deleted while an object of
// the set can't be written, or if there are too many.
func (k *keeper) planPrune(leftovers []leftover, changes []Change) []Change {
	as := Change{Action: ActionPrune}
	leftovers = slices.DeleteFunc(leftovers, func(l leftover) bool { return !l.object.GetDeletionTimestamp().IsZero() })
	switch {
	case slices.ContainsFunc(changes, func(c Change) bool {
		return c.Action == ActionRefuse || c.Action == ActionWait || c.Action == ActionReplace
	}):
		as = Change{Action: ActionWait, Why: "it is pruned when all objects of the set are written"}
	case k.pruneLimit >= 0 && len(leftovers) > k.pruneLimit:
		as = Change{Action: ActionRefuse, Why: (&limitError{refsOf(leftovers), k.pruneLimit}).Error()}
	}
	all := make([]Change, len(leftovers))
	for i, l := range leftovers {
		all[i] = as
		all[i].Object = l.Ref
	}
	return all
}

// plan returns what would be done to one object, nil for nothing.
func (c *child) plan(ctx context.Context) (*Change, error) {
	current := c.kind.empty(c.gvk)
	err := c.client.Get(ctx, c.key(), current, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) && c.once != nil && c.once.done {
		return nil, nil //nolint:nilnil // it has completed, and is not run again
	}
	if apierrors.IsNotFound(err) {
		_, err := c.apply(ctx, c.content, "resourceVersion", onlyCreate, client.DryRunAll)
		if err == nil || apierrors.IsNotFound(err) { // its namespace may be one of the set
			return &Change{Action: ActionCreate, Object: c.Ref}, nil
		}
		return c.planRefusal(err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.Ref, err)
	}
	ran := current.GetAnnotations()[onceAnnotation]
	if c.once != nil && c.once.done && ran != c.once.hash {
		return nil, nil //nolint:nilnil // it ran for another content after that of the set
	}
	policy, err := c.policy.with(current, c.manager)
	verdict := verdictRefuse
	if err == nil {
		verdict, err = c.mayWrite(ctx, current, &policy)
	}
	switch wait := (*waitError)(nil); {
	case errors.As(err, &wait):
		return &Change{Action: ActionWait, Object: c.Ref, Why: wait.what}, nil
	case err != nil:
		return &Change{Action: ActionRefuse, Object: c.Ref, Why: strings.TrimPrefix(err.Error(), c.Ref.String()+" ")}, nil
	case policy.frozen || policy.has(CreateOnly) && verdict == verdictOurs || c.isUnchanged(current, &policy):
		return nil, nil //nolint:nilnil // nothing is done
	case c.once != nil && ran != "" && ran != c.once.hash && policy.has(Replace):
		return &Change{Action: ActionReplace, Object: c.Ref, Why: "it runs for another content"}, nil
	}
	answer, err := c.changeTo(ctx, current, &policy, client.DryRunAll)
	if fields := c.others(current, &policy); apierrors.IsInvalid(err) && len(fields) > 0 {
		return &Change{Action: ActionChange, Object: c.Ref, Why: fmt.Sprintf("%s goes, because the set has another member of its union", strings.TrimPrefix(fields[0].String(), "."))}, nil
	}
	if apierrors.IsInvalid(err) {
		refused := err
		if _, err = c.replacement(ctx, current, &policy, refused); err == nil {
			return &Change{Action: ActionReplace, Object: c.Ref, Why: refused.Error()}, nil
		}
	}
	if err != nil {
		return c.planRefusal(err)
	}
	fields, err := c.differences(current, answer)
	return &Change{Action: ActionChange, Object: c.Ref, Why: c.taken(current), Fields: fields}, err
}

// planRefusal returns the change of an object that the API server, or its policy, refuses, and the
// error of a request that says nothing of the object.
func (c *child) planRefusal(err error) (*Change, error) {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || failure.Classify(err).Class == failure.ClassTerminal {
		return &Change{Action: ActionRefuse, Object: c.Ref, Why: strings.TrimPrefix(err.Error(), c.Ref.String()+": ")}, nil
	}
	return nil, err
}

// taken says which field of an object that the set wants as before another client has taken.
func (c *child) taken(current client.Object) string {
	if current.GetAnnotations()[HashAnnotation] != c.hash {
		return ""
	}
	gap, _ := witness.Why(current.GetManagedFields(), c.manager, c.content)
	return gap.String()
}

// differences returns what differs between two states of the object, without what the API server
// and the set keep for themselves.
func (c *child) differences(from, to client.Object) ([]Diff, error) {
	contents := make([]map[string]any, 2)
	for i, obj := range []client.Object{from, to} {
		u, err := unstructuredOf(obj, c.gvk)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", c.Ref, err)
		}
		content := runtime.DeepCopyJSON(u.Object)
		for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			unstructured.RemoveNestedField(content, "metadata", field)
		}
		unstructured.RemoveNestedField(content, "metadata", "annotations", HashAnnotation)
		delete(content, "apiVersion")
		delete(content, "kind")
		contents[i] = content
	}
	secret := c.Group == "" && c.Kind == "Secret"
	var found []Diff
	for _, f := range difference.Of(contents[0], contents[1], difference.Options{
		Hidden: func(path string) bool { return secret && strings.HasPrefix(path, "data") },
	}) {
		found = append(found, Diff(f))
	}
	return found, nil
}

// String returns the plan with a line for each object, and one for each field that would change.
func (p *Plan) String() string {
	var text strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&text, "%-8s %s", c.Action, c.Object)
		if c.Why != "" {
			fmt.Fprintf(&text, ": %s", c.Why)
		}
		text.WriteByte('\n')
		for _, f := range c.Fields {
			fmt.Fprintf(&text, "           %s: %s -> %s\n", f.Path, short(f.From), short(f.To))
		}
	}
	if p.Unchanged > 0 {
		fmt.Fprintf(&text, "%d unchanged\n", p.Unchanged)
	}
	return text.String()
}

// longestValue is how many bytes of a value are printed.
const longestValue = 80

func short(value any) string {
	if value == nil {
		return "nothing"
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if text := string(data); len(text) > longestValue {
		return strings.ToValidUTF8(text[:longestValue], "") + "..."
	}
	return string(data)
}
