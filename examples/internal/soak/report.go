// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A violation is a wrong finding about one object.
type violation struct {
	object   string
	lane     int    // of the edits that were made to it; noLane if there are none
	evidence string // what is, what should be, and since when
}

const noLane = -1

// A check is one line of the table: a promise, and what was found against it.
type check struct {
	name       string
	seen       string // what was counted; "" says the number of violations
	violations []violation
	figure     bool // nothing is promised
}

// figure returns a line of the table about which nothing is promised.
func figure(name, format string, args ...any) check {
	return check{name: name, seen: fmt.Sprintf(format, args...), figure: true}
}

// checks are the lines of a comparison.
type checks struct{ all []check }

func newChecks(names ...string) *checks {
	c := &checks{}
	for _, name := range names {
		c.all = append(c.all, check{name: name})
	}
	return c
}

func (c *checks) named(name string) *check {
	return &c.all[slices.IndexFunc(c.all, func(c check) bool { return c.name == name })]
}

func (c *checks) add(name string, found ...violation) {
	to := c.named(name)
	to.violations = append(to.violations, found...)
}

func (c *checks) count(name string) int { return len(c.named(name).violations) }

// see says what was counted.
func (c *checks) see(name, format string, args ...any) {
	c.named(name).seen = fmt.Sprintf(format, args...)
}

// A report is what became of one example.
type report struct {
	example string
	checks  []check
	errors  []string // samples from the log of the operator
	edits   func(lane, n int) []string
}

func (r *report) violations() int {
	sum := 0
	for _, c := range r.checks {
		sum += len(c.violations)
	}
	return sum
}

// printedViolations is how many of one check are printed: the ones after them mostly say the same.
const printedViolations = 10

// print writes the table, and under it what was found.
func (r *report) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range r.checks {
		verdict := "ok"
		if len(c.violations) > 0 {
			verdict = "VIOLATED"
		} else if c.figure {
			verdict = ""
		}
		seen := c.seen
		if seen == "" {
			seen = fmt.Sprint(len(c.violations))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.example, verdict, c.name, seen)
	}
	_ = w.Flush() // there is no other place to report it
	for _, c := range r.checks {
		if len(c.violations) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s: %d violations\n", c.name, len(c.violations))
		for i, v := range c.violations {
			if i == printedViolations {
				fmt.Fprintf(out, "  ... and %d more\n", len(c.violations)-i)
				break
			}
			r.printViolation(out, v)
		}
	}
	if len(r.errors) > 0 {
		fmt.Fprintln(out, "\nerrors in the log of the operator, some of them:")
		for _, e := range r.errors {
			fmt.Fprintf(out, "  %s\n", e)
		}
	}
}

func (r *report) printViolation(out io.Writer, v violation) {
	fmt.Fprintf(out, "  %s: %s\n", v.object, v.evidence)
	if v.lane == noLane || r.edits == nil {
		return
	}
	if last := r.edits(v.lane, 4); len(last) > 0 {
		fmt.Fprintf(out, "    the last edits: %s\n", strings.Join(last, "; "))
	}
}

// printSummary writes a line for each example.
func printSummary(out io.Writer, reports []*report) {
	for _, r := range reports {
		if n := r.violations(); n > 0 {
			fmt.Fprintf(out, "%s: %d violations\n", r.example, n)
		} else {
			fmt.Fprintf(out, "%s: all checks hold\n", r.example)
		}
	}
}
