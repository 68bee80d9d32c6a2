// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package mutants has small operators with the mistakes that real ones have had. Each is made of a
// right operator by one mistake, and is the test of the simulator: every mutant has to be caught,
// and no right twin may raise an alarm.
package mutants

import (
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
)

// A Mutant is a right operator and the mistake that makes it wrong.
type Mutant struct {
	Bug       Bug
	Class     string // what is wrong, in a sentence
	Published string // where such a mistake was published
	CaughtBy  []oracle.Name
	Workload  func(Bug) sim.Workload
}

// Bug is a mistake. The empty one is none: the right twin.
type Bug string

// Right is no mistake.
const Right Bug = ""

// The ways in which a right operator can differ from the empty Bug: none of them is a mistake.
const (
	adoptsOrphans  Bug = "adopts-orphans"  // what has its label and no controller becomes its own
	deletesOrphans Bug = "deletes-orphans" // what has its label and no controller is deleted
)

// A Twin is a right operator, about which no oracle may say anything.
type Twin struct {
	Name     string
	Workload func() sim.Workload
}

// Twins returns the right operators.
func Twins() []Twin {
	of := func(name string, workload func(Bug) sim.Workload, bug Bug) Twin {
		return Twin{Name: name, Workload: func() sim.Workload {
			w := workload(bug)
			w.Name = name
			return w
		}}
	}
	twins := []Twin{
		of("children", childWorkload, Right), // which refuses names that are taken, with a condition
		of("children-adopt", childWorkload, adoptsOrphans),
		of("children-delete", childWorkload, deletesOrphans),
		of("secret-changes", secretWorkload, Right),
		of("pods", podWorkload, Right),
		of("external", externalWorkload, Right),
		of("tokens", tokenWorkload, Right),
		of("keeper", keeperWorkload, Right),
		of("held", heldWorkload, Right),
		of("switched-off", switchedOffWorkload, Right),
		of("in-use", inUseWorkload, Right),
		of("revisions", revisionWorkload, Right),
		of("fleet", fleetWorkload, Right),
		of("sets", setWorkload, Right),
		of("meshed", meshedWorkload, Right),
		of("rivals", rivalWorkload, Right),
		of("upgrade", upgradeWorkload, Right),
		of("reader", readerWorkload, Right),
		of("reader-polls", readerWorkload, readsAndPolls),
		of("step-reader", stepReaderWorkload, Right),
		of("step-reader-on-purpose", stepReaderWorkload, stepReadsOnPurpose),
		of("step-reader-until-later", stepReaderWorkload, stepReadsUntilLater),
	}
	for _, p := range playedTwins() {
		twins = append(twins, of("played-"+p.name, p.workload, Right))
	}
	return twins
}

// mutantsOf returns a function that makes the mutants of a workload.
func mutantsOf(workload func(Bug) sim.Workload) func(bug Bug, class, published string, caughtBy ...oracle.Name) Mutant {
	return func(bug Bug, class, published string, caughtBy ...oracle.Name) Mutant {
		return Mutant{Bug: bug, Class: class, Published: published, CaughtBy: caughtBy, Workload: workload}
	}
}

// definitions is where the CustomResourceDefinition of the package is.
var definitions = []string{"crd"}

// All returns the mutants.
func All() []Mutant {
	var list []Mutant
	for _, family := range [][]Mutant{
		childMutants(), podMutants(), externalMutants(), tokenMutants(), keeperMutants(), revisionMutants(), fleetMutants(),
		setMutants(), meshedMutants(), rivalMutants(), upgradeMutants(),
		readerMutants(),
	} {
		list = append(list, family...)
	}
	return list
}
