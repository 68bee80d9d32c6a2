// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/run"
	"github.com/ctrlkit/ctrlkit/internal/track"
	"github.com/ctrlkit/ctrlkit/internal/transition"
	"github.com/ctrlkit/ctrlkit/internal/trial"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/memory"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// ErrNoTransitions is returned if no transition of the samples has a name that was asked for.
var ErrNoTransitions = errors.New("no transition of the samples matches")

// A change is a transition of one sample.
type change struct {
	transition.Transition
	name    string
	samples []run.Manifest // all, with the changed one
	changed run.Manifest
	back    run.Manifest
}

// changes returns the transitions of the samples that the API server accepts, and how many it
// refuses.
func (o *Options) changes() (accepted []*change, refused int, err error) {
	c, err := memory.Start(memory.Options{Definitions: o.Definitions})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	for _, m := range o.Samples {
		if err := trial.ApplySample(c, m.Object, o.Namespace, ignored); err != nil {
			return nil, 0, fmt.Errorf("%s %q of %s: %w", m.Object.GetKind(), m.Object.GetName(), m.Where(), err)
		}
	}
	var lists [][]*change
	for i, m := range o.Samples {
		list, n, err := o.changesOf(c, i, m)
		if err != nil {
			return nil, 0, err
		}
		lists = append(lists, list)
		refused += n
	}
	for row := 0; ; row++ {
		more := false
		for _, list := range lists {
			if row < len(list) {
				accepted, more = append(accepted, list[row]), true
			}
		}
		if !more {
			return accepted, refused, nil
		}
	}
}

func ignored(error) {} // the runs say it

// changesOf returns the transitions of a sample that a cluster with all samples accepts.
func (o *Options) changesOf(c *memory.Cluster, i int, m run.Manifest) (accepted []*change, refused int, err error) {
	kind := m.Object.GroupVersionKind()
	for _, d := range o.Definitions {
		if d.Spec.Group != kind.Group || d.Spec.Names.Kind != kind.Kind {
			continue
		}
		s, err := transition.SchemaOf(d, kind.Version)
		if err != nil {
			return nil, 0, err
		}
		for _, t := range transition.Of(s, m.Object.Object) {
			name := strings.ToLower(kind.Kind) + "/" + m.Object.GetName() + " " + t.String()
			if !o.Transitions.MatchString(name) {
				continue
			}
			changed := m
			changed.Object = &unstructured.Unstructured{Object: t.Of(m.Object.Object)}
			if trial.ApplySample(c, changed.Object, o.Namespace, ignored) != nil || trial.ApplySample(c, m.Object, o.Namespace, ignored) != nil {
				refused++
				continue
			}
			samples := slices.Clone(o.Samples)
			samples[i] = changed
			accepted = append(accepted, &change{Transition: t, name: name, samples: samples, changed: changed, back: m})
		}
	}
	return accepted, refused, nil
}

// transitions returns the changes to try; none if faults are.
func (o *Options) transitions() ([]task, error) {
	if o.Transitions == nil {
		return nil, nil
	}
	changes, refused, err := o.changes()
	if err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return nil, fmt.Errorf("%w %q (the API server refuses %d): are there samples of custom resources, with a spec?", ErrNoTransitions, o.Transitions, refused)
	}
	var tasks []task
	for _, c := range changes {
		tasks = append(tasks, task{change: c})
	}
	o.Script = []Step{{Apply: o.Samples, name: "apply the samples"}}
	o.Progress(fmt.Sprintf("%d transitions; the API server refuses %d others", len(changes), refused))
	return tasks, nil
}

// script returns the steps that change an object which works, and change it back.
func (c *change) script(samples []run.Manifest) []Step {
	return []Step{
		{Apply: samples, name: "apply the samples", wants: &wants{}},
		{Apply: []run.Manifest{c.changed}, name: c.name, wants: &wants{oracle.SameAsFresh, "as that of an object which is created like this"}},
		{Apply: []run.Manifest{c.back}, name: "change it back", wants: &wants{oracle.Recovers, "as it was before " + c.name}},
	}
}

// tryChange carries out a change of an object that works, and the creation of one that has it from the
// start, with which it is compared.
func (e *explorer) tryChange(ctx context.Context, c *change) (*runner, error) {
	fresh := *e.Options
	fresh.Script = []Step{{Apply: c.samples, name: "create with " + c.name}}
	alone, err := fresh.run(ctx, fault.Plan{}, nil)
	if err != nil || len(alone.violations) > 0 {
		return alone, err
	}
	before, want := e.reference.states[0], alone.checkpoints[0]
	failed := c.fails(before, want)
	if failed && c.Kind == transition.Wrong && !alone.reports(c.back.Object) {
		alone.violate(oracle.MistakeReported, 0, fmt.Sprintf("an object with %s has nothing of what it has without it, and neither its status nor an Event says why", c.name))
		return alone, nil
	}
	if failed {
		want = nil // what worked may stay
	}
	changing := *e.Options
	changing.Script = c.script(e.Samples)
	return changing.run(ctx, fault.Plan{}, &reference{states: []state{before, want, before}, chance: e.reference.chance})
}

// fails reports whether an operator can't do what a changed object asks for: it lacks what it has
// without the change.
func (c *change) fails(before, changed state) bool {
	own, lacking := 0, 0
	for thing := range before {
		if c.isSample(thing) {
			continue
		}
		own++
		if _, ok := changed[thing]; !ok {
			lacking++
		}
	}
	return lacking > 0 && (c.Kind == transition.Wrong || lacking == own)
}

// isSample reports whether a thing is named like a sample. Objects of the operator with the name
// of a sample are of another kind.
func (c *change) isSample(thing string) bool {
	resource, name, _ := strings.Cut(thing, " ")
	return slices.ContainsFunc(c.samples, func(m run.Manifest) bool {
		kind := m.Object.GroupVersionKind()
		_, group, _ := strings.Cut(resource, ".")
		return group == kind.Group && strings.HasPrefix(resource, strings.ToLower(kind.Kind)[:len(kind.Kind)-1]) && (name == m.Object.GetName() || strings.HasSuffix(name, "/"+m.Object.GetName()))
	})
}

// reports reports whether the status of an object says something, or an Event about it. A cluster
// that was stopped still has its objects.
func (r *runner) reports(object *unstructured.Unstructured) bool {
	for _, other := range r.cluster.Objects() {
		kind, _ := other.Content["kind"].(string)
		if other.Resource.Resource == "events" {
			name, _, _ := unstructured.NestedString(other.Content, "involvedObject", "name")
			if regarding, _, _ := unstructured.NestedString(other.Content, "regarding", "name"); name == object.GetName() || regarding == object.GetName() {
				return true
			}
		}
		if kind == object.GetKind() && other.Name == object.GetName() && other.Resource.Group == object.GroupVersionKind().Group {
			if status, _ := other.Content["status"].(map[string]any); len(status) > 0 {
				return true
			}
		}
	}
	return false
}

// builtin are groups of kinds whose status other controllers write.
var builtin = []string{"", "apps", "batch", "autoscaling", "policy"}

// forget removes from a state what says how an object came to be as it is: it differs between an
// object that was changed and one that was created.
func (s state) forget() state {
	for thing, content := range s {
		resource, _, _ := strings.Cut(thing, " ")
		group := schema.ParseGroupResource(resource).Group
		if slices.Contains(builtin, group) || strings.HasSuffix(group, ".k8s.io") {
			delete(content, "status")
		}
		if status := track.Trimmed(content["status"]); status != nil {
			content["status"] = status // an empty message says no more than none
		} else {
			delete(content, "status")
		}
		unstructured.RemoveNestedField(content, "metadata", "annotations", "deployment.kubernetes.io/revision")
		if annotations, _, _ := unstructured.NestedMap(content, "metadata", "annotations"); len(annotations) == 0 {
			unstructured.RemoveNestedField(content, "metadata", "annotations")
		}
		conditions, _, _ := unstructured.NestedFieldNoCopy(content, "status", "conditions")
		list, _ := conditions.([]any)
		for _, item := range list {
			if condition, ok := item.(map[string]any); ok {
				delete(condition, "reason")
				delete(condition, "message")
			}
		}
	}
	return s
}
