// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// A mark stands for all that decides how a run continues at a checkpoint: the worlds so far, what
// the processes that live have asked for and were shown since they started, which is all that they
// can remember, and what the oracles know. A plan whose run comes to the mark of an earlier one
// joins it: it ends there, as what follows was seen already. Only a mark after which nothing was
// found counts, so that each plan that leads to a finding shows it.
type mark struct {
	text  string
	entry int // in the trace
}

// joint is what a run has in common with earlier ones.
type joint struct {
	run    *run
	marks  []mark
	joined bool // the run has ended early
}

// join notes the mark of the present checkpoint, and reports whether an earlier run has continued
// from it without a finding.
func (j *joint) join() bool {
	if !j.possible() {
		return false
	}
	r := j.run
	text, ok := j.markText()
	if !ok {
		return false
	}
	m := mark{text, r.trace.Len()}
	j.marks = append(j.marks, m)
	if !r.reference.joins[m.text] {
		return false
	}
	j.joined = true
	r.trace.Add("sim", "join", "an earlier run has continued in the same way and shown nothing")
	return true
}

// possible reports whether the run has marks: all its faults have struck, nothing is left of them
// that neither the world nor a process shows, and there is no real server that may remember them.
func (j *joint) possible() bool {
	r := j.run
	return r.reference != nil && r.reference.joins != nil && r.played == nil && len(r.plan.Faults) > 0 &&
		!slices.Contains(r.injector.Fired(), false) && !r.plan.Has(fault.MutateWrite) && r.workload.rules.Network == ""
}

// markText returns the mark of the present checkpoint, unless a fake keeps from being compared.
func (j *joint) markText() (text string, ok bool) {
	r := j.run
	unseen, ok := r.fakes.Unseen()
	if !ok {
		return "", false
	}
	h := sha256.New()
	fmt.Fprintln(h, r.plan.Seed, r.judge.Names().Replace(unseen))
	for _, c := range r.checkpoints {
		hashWorld(h, c, r.reference.Mask)
	}
	for _, line := range slices.Concat(r.judge.Past(), memories(r)) {
		fmt.Fprintln(h, line)
	}
	return base64.RawStdEncoding.EncodeToString(h.Sum(nil)[:12]), true
}

// hashWorld adds a world to a hash, without what differs between runs without faults.
func hashWorld(h hash.Hash, world snapshot.Snapshot, mask map[string]bool) {
	for _, thing := range slices.Sorted(maps.Keys(world)) {
		fmt.Fprintln(h, thing)
		for _, path := range slices.Sorted(maps.Keys(world[thing])) {
			if !mask[snapshot.MaskKey(oracle.Difference{Thing: thing, Path: path})] {
				fmt.Fprintln(h, path, world[thing][path])
			}
		}
	}
}

// memories returns what the processes that live can remember: what they have asked for, with what
// success, and the events that they were shown, in a fixed order.
func memories(r *run) []string {
	alive := map[string]bool{}
	list := []string{}
	for _, p := range r.processes.alive() {
		alive[p.owner.Name] = true
		list = append(list, fmt.Sprint("process with a clock that is off by ", r.processes.skewOf(p)))
	}
	names := r.judge.Names()
	for _, e := range r.trace.Entries() {
		if alive[e.Actor] && e.What != "fault" {
			list = append(list, names.Replace(remembered(e)))
		}
	}
	slices.Sort(list)
	return list
}

var (
	// numbered matches what requests and calls are counted by, which differs with what came before.
	numbered = regexp.MustCompile(` \d+$`)

	// answered matches what is said of an answer beside its code: names of versions and times.
	answered = regexp.MustCompile(` -> (\d\d\d) .*$`)
)

// remembered returns what a process can remember of an entry of the trace.
func remembered(e trace.Entry) string {
	return numbered.ReplaceAllString(e.What, "") + " " + answered.ReplaceAllString(e.Text, " -> $1")
}

// cleanMarks returns the marks of a run after which it has shown nothing.
func (j *joint) cleanMarks(violations []oracle.Violation) []string {
	var list []string
	for _, m := range j.marks {
		if !slices.ContainsFunc(violations, func(v oracle.Violation) bool { return v.Entry >= m.entry }) {
			list = append(list, m.text)
		}
	}
	return list
}

// A worker gets a plan and the marks that it does not know as a line.

// longestLine is how long a line may be.
const longestLine = 64 << 20

func joinLine(plan string, marks []string) string {
	return strings.Join(append([]string{plan}, marks...), "\t") + "\n"
}

func splitLine(line string) (plan string, marks []string) {
	parts := strings.Split(line, "\t")
	return parts[0], parts[1:]
}

// addMarks adds marks at which runs may end early.
func (r *reference) addMarks(marks []string) {
	if r == nil {
		return
	}
	for _, m := range marks {
		r.joins[m] = true
	}
}
