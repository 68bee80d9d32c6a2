// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fault has the faults that a simulation injects: their names, their text form, and the
// plans that are made of them. Authors know them as sim.Fault, sim.FaultKind and sim.Plan.
//
//	plan, err := fault.ParsePlan("seed 7; crash after write 3; refuse write 5: 409")
//
// Everything about a kind of fault that does not need a running simulation is one entry in the
// table of this package: its text, where it strikes, how its parameters vary, and what it changes
// about what can be expected of the operator. What the fault does is one entry in the table of
// package internal/sim/inject.
package fault
