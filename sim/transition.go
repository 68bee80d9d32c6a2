// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
	"github.com/ctrlkit/ctrlkit/internal/sim/transition"
)

// runTransition runs a workload in which an object is created as changed, and one in which it is
// changed when the operator is idle.
func runTransition(t *testing.T, w *Workload, crds []*apiextensionsv1.CustomResourceDefinition, plan fault.Plan, ref *reference, without oracleSet) (*result, error) {
	c, err := ref.change(crds, plan.Transition)
	if err != nil {
		return nil, err
	}
	run := func(plan fault.Plan, fresh bool) (*result, error) {
		of := *w
		of.course = &course{change: c, fresh: fresh}
		return runOnce(t, &of, crds, plan, nil, without)
	}
	if len(plan.Faults) > 0 {
		of := *w
		of.course = &course{change: c}
		return runFaults(t, &of, crds, plan, ref, without)
	}
	fresh, err := run(plan, true)
	if err != nil || fresh.ends() {
		return fresh, err
	}
	j := comparison{change: c, ref: ref, fresh: fresh, without: without}
	if j.unreported() {
		return fresh, nil
	}
	changing, err := run(plan, false)
	if err != nil || changing.ends() {
		return changing, err
	}
	for seed := plan.Seed + 1; seed <= plan.Seed+learningRuns && len(j.sameAsFresh(changing)) > 0; seed++ {
		other, err := run(fault.Plan{Seed: seed}, true)
		if err != nil {
			return nil, err
		}
		j.learn(other) // what differs may do so by chance
	}
	j.judge(changing)
	changing.requests += fresh.requests
	changing.leaked = changing.leaked || fresh.leaked
	return changing, nil
}

// runFaults runs a transition with faults. It is judged by the run without them.
func runFaults(t *testing.T, w *Workload, crds []*apiextensionsv1.CustomResourceDefinition, plan fault.Plan, ref *reference, without oracleSet) (*result, error) {
	changing := ref.changing[plan.Transition]
	if changing == nil {
		var err error
		if changing, err = ref.learnTransition(t, w, crds, without); err != nil {
			return nil, err
		}
		ref.changing[plan.Transition] = changing
	}
	if changing.first.ends() {
		return changing.first, nil // which was found without faults, too
	}
	r, err := runOnce(t, w, crds, plan, changing, without)
	if err != nil {
		return nil, err
	}
	r.violations, r.writes = changing.news(plan, r.violations, r.writes)
	return r, nil
}

// learnTransition runs a transition without faults, and returns what runs of it with faults are
// judged by.
func (ref *reference) learnTransition(t *testing.T, w *Workload, crds []*apiextensionsv1.CustomResourceDefinition, without oracleSet) (*reference, error) {
	first, err := runOnce(t, w, crds, fault.Plan{}, nil, without)
	if err != nil {
		return nil, err
	}
	if first.ends() {
		first.violations, first.writes = nil, nil
		return &reference{first: first}, nil
	}
	r := first.asReference()
	maps.Copy(r.Mask, ref.Mask)
	for _, v := range first.violations {
		r.known[report.Key(v, nil)] = true
	}
	for seed := uint64(1); seed <= learningRuns; seed++ {
		other, err := runOnce(t, w, crds, fault.Plan{Seed: seed}, nil, without)
		if err != nil {
			return nil, err
		}
		r.Learn(other.checkpoints)
	}
	return r, nil
}

// ends reports whether a run says nothing about its end, or was not possible.
func (r *result) ends() bool {
	return r.run.played.invalid || r.run.aborted || slices.ContainsFunc(r.violations, func(v oracle.Violation) bool { return slices.Contains(endsExploration, v.Oracle) })
}

// last returns the world at one of the last checkpoints of a run: 0 is the last one.
func (r *result) last(n int) snapshot.Snapshot { return r.checkpoints[r.run.ended-n] }

// things returns what the operator or a user has written in the run.
func (r *result) things() things { return r.run.played.things(r.run.judge.Names()) }

// violate adds a violation that shows at a checkpoint of a run; 0 is the last one.
func (r *result) violate(name oracle.Name, n int, text string, differences []oracle.Difference) {
	for _, d := range differences {
		text += "\n  " + d.String()
	}
	r.violations = append(r.violations, r.run.placed([]oracle.Violation{{Oracle: name, Text: text, Checkpoint: r.run.ended - n + 1, Differences: differences}})...)
	r.writes = r.run.writes.Evidence(r.violations, r.run.judge.Names())
}

// comparison compares the worlds of a transition.
type comparison struct {
	change  *transition.Change
	ref     *reference
	fresh   *result
	without oracleSet
	chance  map[string]bool // what differs between worlds in which the object is created as changed
}

// unreported adds a violation to the run in which the object is created as changed, if the operator
// can't do what it asks for, and nothing says so.
func (j *comparison) unreported() bool {
	text := j.change.Unreported()
	if err := j.failure(); err != "" {
		text = fmt.Sprintf("the last reconcile of an object with %s fails, and neither its status nor an Event says why: %s", j.change.Name, err)
	} else if !j.lacks() || j.change.Kind != transition.Wrong {
		return false
	}
	var contents []map[string]any
	for _, o := range j.fresh.run.cluster.Server.Objects() {
		contents = append(contents, o.Content)
	}
	if _, off := j.without[oracle.MistakeReported]; off || transition.Reported(contents, j.change.Before) {
		return false
	}
	j.fresh.violate(oracle.MistakeReported, 0, text, nil)
	return true
}

// failure returns the error of the last reconcile of the object that was created as changed, unless
// it fails without the change, too.
func (j *comparison) failure() string {
	of := func(f judge.Failing) bool {
		return f.Object == strings.TrimPrefix(j.change.Before.GetNamespace()+"/"+j.change.Before.GetName(), "/")
	}
	i := slices.IndexFunc(j.fresh.run.played.failing, of)
	if i < 0 || slices.ContainsFunc(j.ref.first.run.played.failing, of) {
		return ""
	}
	return j.fresh.run.played.failing[i].Err
}

// lacks reports whether there is less of what the operator makes than without the change.
func (j *comparison) lacks() bool {
	written := j.ref.first.things()
	return transition.Fails(j.change.Kind, j.ref.first.last(0), j.fresh.last(0), func(thing string) bool { return written[thing] || !written.counts(thing) })
}

// sameAsFresh returns what differs between the worlds of a changed object and one that was created
// like this. Results of the correct spec may stay where a mistake is in the way.
func (j *comparison) sameAsFresh(changing *result) []oracle.Difference {
	if j.lacks() || j.failure() != "" {
		return nil
	}
	return j.between(j.fresh, changing, j.fresh.last(0), changing.last(1))
}

// between returns what differs between the worlds of two runs, without what only players have
// written.
func (j *comparison) between(wanted, shown *result, want, got snapshot.Snapshot) []oracle.Difference {
	inWant, inGot := wanted.things(), shown.things()
	return slices.DeleteFunc(judge.Between(want, got, j.ref.Mask), func(d oracle.Difference) bool {
		written := inGot
		if _, ok := want[d.Thing]; ok {
			written = inWant
		}
		return j.chance[snapshot.MaskKey(d)] || !written.counts(d.Thing)
	})
}

// learn notes what is otherwise in another world in which the object is created as changed.
func (j *comparison) learn(other *result) {
	if j.chance == nil {
		j.chance = map[string]bool{}
	}
	if other.ends() {
		return
	}
	for _, d := range j.fresh.last(0).Diff(other.last(0), nil) {
		j.chance[snapshot.MaskKey(d)] = true
	}
}

// judge adds the violations to the run in which the object is changed.
func (j *comparison) judge(changing *result) {
	add := func(name oracle.Name, n int, text string, differences []oracle.Difference) {
		if _, off := j.without[name]; len(differences) > 0 && !off {
			changing.violate(name, n, text, differences)
		}
	}
	add(oracle.SameAsFresh, 1, fmt.Sprintf("after %s, the world is not that of an object which is created like this:", j.change.Name), j.sameAsFresh(changing))
	add(oracle.Recovers, 0, fmt.Sprintf("when %s is changed back, the world is not what it was before:", j.change.Name),
		j.between(j.ref.first, changing, j.ref.first.last(0), changing.last(0)))
}
