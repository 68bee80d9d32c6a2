// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
)

// maxExcerpt is how many lines of a trace are shown at most.
const maxExcerpt = 40

// How much of a trace is shown, besides the lines that are always shown.
const (
	writesAround = 8 // lines before and after a fault, and before the violation, in which writes are shown
	linesAround  = 2 // lines before and after a fault of which all are shown
)

// excerpt returns the lines of a trace that matter: the faults, the violation, the lives of the
// processes, what is about the objects, and what is written around the faults and the violation.
// entry is the place of the violation: what comes later does not matter.
func excerpt(trace []string, entry int, objects []string) []string {
	marks := marksOf(trace, entry)
	weights := make([]int, len(trace)) // 0: not shown
	for i, line := range trace[:min(entry+1+linesAround, len(trace))] {
		weights[i] = weigh(line, i, marks, objects)
	}
	if entry < len(trace) && (what(trace[entry]) == "oracle" || what(trace[entry]) == "check") {
		weights[entry] = 4
	}
	for weight := 1; weight < 4 && numPositive(weights) > maxExcerpt; weight++ {
		thin(weights, weight, numPositive(weights)-maxExcerpt, marks)
	}
	return render(trace, weights)
}

// marksOf returns the places of the faults and of the violation.
func marksOf(trace []string, entry int) []int {
	var marks []int
	for i, line := range trace {
		if what(line) == "fault" {
			marks = append(marks, i)
		}
	}
	if len(marks) == 0 {
		marks = append(marks, 0)
	}
	return append(marks, min(entry, len(trace)-1))
}

// what returns what happened in a line of a trace: "write", "fault", "event".
func what(line string) string {
	if fields := strings.Fields(line); len(fields) > 2 {
		return fields[2]
	}
	return ""
}

// byPlayer reports whether a line is about what a player does, in place of a controller of the
// cluster.
func byPlayer(line string) bool {
	fields := strings.Fields(line)
	return len(fields) > 1 && strings.HasSuffix(fields[1], "-player")
}

// weigh returns how much a line matters.
func weigh(line string, i int, marks []int, objects []string) int {
	distance := distanceTo(marks, i)
	about := slices.ContainsFunc(objects, func(of string) bool { return mentions(line, of) })
	switch what(line) {
	case "fault":
		return 4
	case "start", "stop", "crash", "end", "heal":
		return 3
	case "write", "call":
		switch {
		case byPlayer(line):
			return 0 // players are right, and write much
		case about:
			return 3
		case distance <= writesAround:
			return 2
		}
	case "watch", "idle", "oracle", "check":
		return 0
	}
	if about || distance <= linesAround {
		return 1
	}
	return 0
}

// mentions reports whether a line is about an object, whose name may end in "*".
func mentions(line, object string) bool {
	prefix, generated := strings.CutSuffix(object, "*")
	i := strings.Index(line, prefix)
	if i < 0 || generated {
		return i >= 0
	}
	rest := line[i+len(prefix):]
	return rest == "" || rest[0] == ' '
}

func distanceTo(marks []int, i int) int {
	least := 1 << 30
	for _, mark := range marks {
		least = min(least, max(mark-i, i-mark))
	}
	return least
}

func numPositive(weights []int) (n int) {
	for _, w := range weights {
		if w > 0 {
			n++
		}
	}
	return n
}

// thin leaves out n lines of a weight, those first that are farthest from the marks.
func thin(weights []int, weight, n int, marks []int) {
	var places []int
	for i, w := range weights {
		if w == weight {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return distanceTo(marks, b) - distanceTo(marks, a) })
	for _, i := range places[:min(n, len(places))] {
		weights[i] = 0
	}
}

// render returns the lines that have a weight, and how many there are between them.
func render(trace []string, weights []int) []string {
	var lines []string
	skipped := 0
	flush := func() {
		switch {
		case skipped == 1:
			lines = append(lines, "    ... 1 line ...")
		case skipped > 1:
			lines = append(lines, fmt.Sprintf("    ... %d lines ...", skipped))
		}
		skipped = 0
	}
	for i, line := range trace {
		if weights[i] == 0 {
			skipped++
			continue
		}
		flush()
		lines = append(lines, line)
	}
	flush()
	return lines
}

// maxTrace is how many lines of a trace a report keeps: a loop without an end has thousands of them.
const maxTrace = 1000

// cut leaves out the middle of a long trace.
func cut(trace []string) []string {
	if len(trace) <= maxTrace {
		return trace
	}
	gap := fmt.Sprintf("    ... %d lines, which -sim.plan prints ...", len(trace)-maxTrace)
	return slices.Concat(trace[:maxTrace/2], []string{gap}, trace[len(trace)-maxTrace/2:])
}

// SetWithout keeps the trace of the run without faults, unless it is too long to be drawn.
func (s *Simulation) SetWithout(trace string) {
	if lines := strings.Split(strings.TrimRight(trace, "\n"), "\n"); len(lines) <= maxTrace {
		s.Without = lines
	}
}
