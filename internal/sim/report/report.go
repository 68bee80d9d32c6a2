// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package report has what simulations have found, as a document: package sim writes one for each
// test binary, and ctrlkit sim merges those of several packages, or of the shards of one
// simulation, and prints them.
//
//	go test ./internal/controller -sim.json=/tmp/report.json
//	ctrlkit sim report --html report.html shard-*.json
//
// The names of the JSON fields are stable. A change that a reader of an older version would
// misunderstand has another version.
package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// Version is the version of the documents that this package writes.
const Version = 1

// A Document is what some simulations have found.
type Document struct {
	Version     int          `json:"version"`
	Simulations []Simulation `json:"simulations"`
}

// A Simulation is what one call of sim.Run has done and found.
type Simulation struct {
	Package string `json:"package"`
	Test    string `json:"test"`
	Number  int    `json:"number"` // which call of sim.Run in the test, from 1

	Shards  []string `json:"shards,omitempty"`  // "1/4": the shards of the plans that are in it; none: all plans
	Stopped string   `json:"stopped,omitempty"` // why not all plans were run: "time limit", "interrupted", "budget 10m"
	Seconds float64  `json:"seconds"`           // of real time; of shards, the sum

	Plans    Plans   `json:"plans"`
	Requests int     `json:"requests"`
	Violated []Count `json:"violated,omitempty"` // ordered by the names of the oracles
	Off      []Off   `json:"off,omitempty"`      // what the test has switched off

	// UnusedRules are the RBAC rules of the operator that no run without faults has used. That is no
	// finding: a rule may be for what the script does not do.
	UnusedRules []string `json:"unusedRules,omitempty"`

	// UncheckedRules are how many more are for controllers that the simulation does not run: "3 for
	// captain_controller.go".
	UncheckedRules []string `json:"uncheckedRules,omitempty"`

	// Needs are what the operator has needed permissions for, whether it has them or not, in the runs
	// that are in the simulation.
	Needs []permission.Need `json:"needs,omitempty"`

	// Without is the trace of the run without faults, which a page draws beside that of a finding.
	Without []string `json:"without,omitempty"`

	// With is the trace of the plan, where one alone was asked for.
	With []string `json:"with,omitempty"`

	// Findings are all kinds of findings, the worst first. A finding that has CoveredBy follows the
	// one that covers it.
	Findings []Finding `json:"findings"`
}

// Plans says how many plans there are.
type Plans struct {
	Total   int `json:"total"`             // in the simulation, or in its shards
	Run     int `json:"run"`               // fewer than Total when the simulation was stopped
	Singles int `json:"singles"`           // of those that were run, with one fault
	Pairs   int `json:"pairs"`             // with two
	Swarms  int `json:"swarms,omitempty"`  // with more
	Changes int `json:"changes,omitempty"` // with a transition, alone or with a fault
	Bad     int `json:"bad"`               // that violate an oracle
	Missed  int `json:"missed"`            // in which a fault found no place
	Joined  int `json:"joined,omitempty"`  // that ended where an earlier one was the same and has shown nothing from there on

	// NotRun are the kinds of faults of which plans were not run, the one with most of them first.
	NotRun []NotRun `json:"notRun,omitempty"`
}

// NotRun says how many plans of a kind of fault were not run.
type NotRun struct {
	Kind  string `json:"kind"`  // "crash before write N"; "pairs" for those with two faults, "swarms" for those with more
	Plans int    `json:"plans"` // that were not run
	Total int    `json:"total"` // that there are
}

// A Count is how many plans violate an oracle.
type Count struct {
	Oracle oracle.Name `json:"oracle"`
	Plans  int         `json:"plans"`
}

// Off is an oracle or a kind of faults that a test has switched off, or what it has declared to be
// meant, so that an oracle does not demand it.
type Off struct {
	Oracle   oracle.Name `json:"oracle,omitempty"`
	Fault    string      `json:"fault,omitempty"`
	Declared string      `json:"declared,omitempty"` // "reads nodes without a watch"
	Reason   string      `json:"reason"`
}

// String says it in one line.
func (o Off) String() string {
	switch {
	case o.Declared != "":
		return fmt.Sprintf("declared: the operator %s: %s", o.Declared, o.Reason)
	case o.Fault != "":
		return fmt.Sprintf("faults %q left out: %s", o.Fault, o.Reason)
	default:
		return fmt.Sprintf("%-22s switched off: %s", o.Oracle, o.Reason)
	}
}

// A Finding is one way in which an oracle was violated.
type Finding struct {
	// Key identifies the kind of the finding: the oracle, what is wrong without numbers and
	// generated names, and the line of code of the write.
	Key string `json:"key"`

	Class   string      `json:"class"` // how bad it is: the text of an oracle.Class
	Oracle  oracle.Name `json:"oracle"`
	Meaning string      `json:"meaning,omitempty"`
	Remedy  string      `json:"remedy,omitempty"`
	Plans   []Plan      `json:"plans"`   // all that show it, in the order of the list of plans
	Example Example     `json:"example"` // the plan that explains it best

	// CoveredBy is the key of a worse finding that most likely has the same cause: it occurs in the
	// same plans.
	CoveredBy string `json:"coveredBy,omitempty"`
}

// A Plan is one that shows a finding.
type Plan struct {
	Order int    `json:"order"` // its place in the list of all plans of the simulation
	Text  string `json:"text"`
}

// An Example is a run that shows a finding.
type Example struct {
	Plan
	Faults      int                 `json:"faults"`         // how many the plan has
	Likelihood  fault.Likelihood    `json:"likelihood"`     // of the plan: 3 is high, 1 low
	Note        string              `json:"note,omitempty"` // when the faults can happen, where that is not always
	Again       string              `json:"again"`          // the command that runs the plan again
	What        string              `json:"what"`           // what is wrong, in one line or several
	Differences []oracle.Difference `json:"differences,omitempty"`
	Write       *Write              `json:"write,omitempty"`   // the write or call that is most likely wrong
	Excerpt     []string            `json:"excerpt,omitempty"` // the lines of the trace that matter
	Trace       []string            `json:"trace,omitempty"`
}

// A Write is a write to the API server, or a call that has an effect outside the cluster.
type Write struct {
	What    string   `json:"what"`              // "write 3", "call 2"
	Actor   string   `json:"actor"`             // the process of the operator
	Request string   `json:"request"`           // "create deployments.apps default/x"
	Object  string   `json:"object,omitempty"`  // "deployments.apps default/x"
	Answer  string   `json:"answer,omitempty"`  // "201"
	Stack   []Site   `json:"stack,omitempty"`   // in the operator's code, the innermost first
	Changes []string `json:"changes,omitempty"` // "+ spec.replicas: 3", "~ data.a: 1 -> 2"
}

// A Site is a line of code.
type Site struct {
	File     string `json:"file"` // relative to the module
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// String returns the site as editors and terminals recognize it.
func (s Site) String() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

// Site returns the line of the operator's code that made the write; empty if that is not known.
func (w *Write) Site() string {
	if w == nil || len(w.Stack) == 0 {
		return ""
	}
	return w.Stack[0].String()
}

// Read reads a document.
func Read(r io.Reader) (*Document, error) {
	d := &Document{}
	if err := json.NewDecoder(r).Decode(d); err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	if d.Version != Version {
		return nil, fmt.Errorf("the report has version %d, and this program reads version %d: use the same ctrlkit for both", d.Version, Version)
	}
	return d, nil
}

// Write writes the document as JSON.
func (d *Document) Write(w io.Writer) error {
	d.Version = Version
	if d.Simulations == nil {
		d.Simulations = []Simulation{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	return nil
}

// Bad reports whether a simulation has findings.
func (d *Document) Bad() bool {
	for i := range d.Simulations {
		if len(d.Simulations[i].Findings) > 0 {
			return true
		}
	}
	return false
}
