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

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// ErrNoTransitions is returned if no transition of the samples has a name that was asked for.
var ErrNoTransitions = errors.New("no transition of the samples matches")

// A change is a transition of one sample.
type change struct {
	transition.Change
	samples       []run.Manifest // all, with the changed one
	changed, back run.Manifest
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
	lists := make([][]*change, len(o.Samples))
	for i, m := range o.Samples {
		changes, n, err := transition.Changes(o.Definitions, m.Object, o.Transitions, func(u *unstructured.Unstructured) error {
			return trial.ApplySample(c, u, o.Namespace, ignored)
		})
		if err != nil {
			return nil, 0, err
		}
		for _, change := range changes {
			lists[i] = append(lists[i], o.changeOf(change, i))
		}
		refused += n
	}
	return transition.Alternate(lists...), refused, nil
}

func ignored(error) {} // the runs say it

// changeOf returns a change of a sample.
func (o *Options) changeOf(c transition.Change, i int) *change {
	changed := o.Samples[i]
	changed.Object = c.Changed
	samples := slices.Clone(o.Samples)
	samples[i] = changed
	return &change{Change: c, samples: samples, changed: changed, back: o.Samples[i]}
}

// transitions returns the changes to try; none if faults are.
func (o *Options) transitions() ([]*change, error) {
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
	o.Script = []Step{{Apply: o.Samples, name: "apply the samples"}}
	o.Progress(fmt.Sprintf("%d transitions; the API server refuses %d others", len(changes), refused))
	return changes, nil
}

// script returns the steps that change an object which works, and change it back.
func (c *change) script(samples []run.Manifest) []Step {
	return []Step{
		{Apply: samples, name: "apply the samples", wants: &wants{}},
		{Apply: []run.Manifest{c.changed}, name: c.Name, wants: &wants{oracle.SameAsFresh, "as that of an object which is created like this"}},
		{Apply: []run.Manifest{c.back}, name: "change it back", wants: &wants{oracle.Recovers, "as it was before " + c.Name}},
	}
}

// tryChange carries out a change of an object that works, and the creation of one that has it from the
// start, with which it is compared.
func (x *exploration) tryChange(ctx context.Context, c *change) (*runner, error) {
	fresh := *x.Options
	fresh.Script = []Step{{Apply: c.samples, name: "create with " + c.Name}}
	alone, err := fresh.run(ctx, fault.Plan{}, nil)
	if err != nil || alone.gaveUp() || alone.violates(oracle.NoPanic) || alone.violates(oracle.BecomesIdle) {
		return alone, err
	}
	before, want := x.reference.states[0], alone.checkpoints[0]
	failed := c.fails(before, want)
	if failed && c.Kind == transition.Wrong && !alone.reports(c.back.Object) {
		alone.violate(oracle.MistakeReported, 0, c.Unreported())
		return alone, nil
	}
	if failed {
		want = nil // what worked may stay
	}
	changing := *x.Options
	changing.Script = c.script(x.Samples)
	r, err := changing.run(ctx, fault.Plan{}, &reference{states: []snapshot.Snapshot{before, want, before}, watched: x.reference.watched})
	if err == nil {
		r.violations = append(r.violations, slices.DeleteFunc(alone.violations, func(v oracle.Violation) bool { return r.violates(v.Oracle) })...)
	}
	return r, err
}

// fails reports whether an operator can't do what a changed object asks for. What only others have
// written, such as a node, does not depend on it.
func (c *change) fails(before, changed snapshot.Snapshot) bool {
	return transition.Fails(c.Kind, before, changed, func(thing string) bool { return c.isSample(thing) || !before.IsCompared(thing) })
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
	var contents []map[string]any
	for _, o := range r.cluster.Objects() {
		contents = append(contents, o.Content)
	}
	return transition.Reported(contents, object)
}
