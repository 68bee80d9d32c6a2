// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A Plan is the faults of one run. Its text is what a finding prints, and what -sim.plan takes.
type Plan = fault.Plan

// A Fault is one thing that goes wrong in a run, at one place.
type Fault = fault.Fault

// A FaultKind is what goes wrong.
type FaultKind = fault.Kind

// ParsePlan reads the text form of a plan:
//
//	plan, err := sim.ParsePlan("seed 7; crash after write 3; refuse write 5: 409")
func ParsePlan(text string) (Plan, error) { return fault.ParsePlan(text) }

// The kinds of faults, first those at a write of the operator.
const (
	FaultCrashBeforeWrite       = fault.CrashBeforeWrite       // the process dies, the write never arrives
	FaultCrashAfterWrite        = fault.CrashAfterWrite        // the write arrives, the process dies without the answer
	FaultLoseWriteAnswer        = fault.LoseWriteAnswer        // the write arrives, the answer is an error
	FaultRefuseWrite            = fault.RefuseWrite            // the write is refused
	FaultLandLate               = fault.LandLate               // the process dies, the write arrives later
	FaultSecondLeader           = fault.SecondLeader           // a second process works beside the first one
	FaultPanicAtWrite           = fault.PanicAtWrite           // user code panics
	FaultStopAtWrite            = fault.StopAtWrite            // the context of the process is canceled
	FaultPauseBeforeWrite       = fault.PauseBeforeWrite       // the process stands still
	FaultTouchBeforeWrite       = fault.TouchBeforeWrite       // another client changes the object just before
	FaultMutateWrite            = fault.MutateWrite            // admission changes what is written
	FaultOccupyName             = fault.OccupyName             // an object of another client has the name
	FaultOccupyNameByController = fault.OccupyNameByController // an object of another controller has it
	FaultLeaveOrphan            = fault.LeaveOrphan            // an earlier owner has left the same object
	FaultDeleteBeforeWrite      = fault.DeleteBeforeWrite      // another client deletes the object just before
	FaultFight                  = fault.Fight                  // another controller undoes the write, three times
	FaultVanish                 = fault.Vanish                 // the object is deleted in spite of the finalizer of the write
	FaultRestartInPast          = fault.RestartInPast          // like a crash, then a stale first list
	FaultJumpClock              = fault.JumpClock              // the clock of the process jumps
	FaultRecreate               = fault.Recreate               // the object is deleted, and created again at once
	FaultDeleteAndCreate        = fault.DeleteAndCreate        // the same, but created when everything is idle
	FaultWipeStatus             = fault.WipeStatus             // another client removes the status
	FaultStripAnnotations       = fault.StripAnnotations       // another client removes what its user has not written
	FaultWithhold               = fault.Withhold               // the object is not there until everything is idle

	// The fault at a deletion by a user.
	FaultWithholdAtDeletion = fault.WithholdAtDeletion

	// The faults at a read.
	FaultPanicAtRead = fault.PanicAtRead
	FaultRefuseRead  = fault.RefuseRead

	// The faults at a call of an external system.
	FaultCrashBeforeCall = fault.CrashBeforeCall
	FaultCrashAfterCall  = fault.CrashAfterCall
	FaultLoseCallAnswer  = fault.LoseCallAnswer
	FaultFailCall        = fault.FailCall
	FaultThrottleCall    = fault.ThrottleCall
	FaultSlowCall        = fault.SlowCall
	FaultHangCall        = fault.HangCall // until the caller gives up
	FaultOutage          = fault.Outage
	FaultOutageUntilIdle = fault.OutageUntilIdle
	FaultDrift           = fault.Drift // the resource that the call was about is changed by another client
	FaultPanicAtCall     = fault.PanicAtCall
	FaultCrashInsideCall = fault.CrashInsideCall // the process dies, the effect comes some seconds later

	// The faults at a watch event.
	FaultDelayWatch     = fault.DelayWatch // the watch stays some events behind
	FaultMissEvent      = fault.MissEvent
	FaultDuplicateEvent = fault.DuplicateEvent
	FaultDelayEvent     = fault.DelayEvent // others overtake it
	FaultCloseWatch     = fault.CloseWatch
	FaultExpireWatch    = fault.ExpireWatch

	// Acts of users.
	FaultTakeDetour = fault.TakeDetour
	FaultProveIdle  = fault.ProveIdle // a resync and a restart of the idle operator, which must not cause a write
)

// An Oracle names one thing that must hold in every run. It says what holds, not what is wrong when
// it does not.
type Oracle = oracle.Name

// The oracles.
const (
	OracleSameEnd            = oracle.SameEnd            // when idle, the world is as it is without the fault
	OracleSilentWhenIdle     = oracle.SilentWhenIdle     // a resync and a restart of an idle operator change nothing, in the cluster and outside
	OracleNoNoopWrites       = oracle.NoNoopWrites       // a resync and a restart of an idle operator send no write that changes nothing
	OracleBecomesIdle        = oracle.BecomesIdle        // the operator becomes idle
	OracleEndsWell           = oracle.EndsWell           // without a fault, no write is refused again and again, and no object's last reconcile fails
	OracleOneExternal        = oracle.OneExternal        // no more external resources are created per object than without the fault
	OracleNoLeak             = oracle.NoLeak             // when an object is gone, so are its external resources
	OracleNoOrphans          = oracle.NoOrphans          // when an object is gone, so are those that the operator has created for it
	OracleDeletionEnds       = oracle.DeletionEnds       // an object that is being deleted goes, or says why it stays
	OracleFinalizerFirst     = oracle.FinalizerFirst     // an object has a finalizer before something is done outside for it
	OracleNoLateFinalizer    = oracle.NoLateFinalizer    // no finalizer is added to an object that is being deleted
	OracleForeignUntouched   = oracle.ForeignUntouched   // objects of other owners are not changed
	OracleSameWork           = oracle.SameWork           // no more objects are created and deleted than without the fault
	OracleSameHistory        = oracle.SameHistory        // counters, times and past conditions in statuses are as without the fault
	OracleReadyWhenDone      = oracle.ReadyWhenDone      // an object reports success only when the work for it is done
	OracleObservedGeneration = oracle.ObservedGeneration // status.observedGeneration does not fall
	OracleConditionsStay     = oracle.ConditionsStay     // types of conditions do not vanish
	OracleTransitionTime     = oracle.TransitionTime     // lastTransitionTime moves with the status, and only then
	OracleCacheUntouched     = oracle.CacheUntouched     // objects in the caches of the operator are not changed in place
	OracleNoLostWakeUp       = oracle.NoLostWakeUp       // what a reconcile reads is watched, or it asks for a time
	OracleBoundedRequests    = oracle.BoundedRequests    // the number of requests is bounded, and how often an object is created
	OracleSaysWhy            = oracle.SaysWhy            // an object that is stuck has a condition that says why
	OracleNoGoroutineLeft    = oracle.NoGoroutineLeft    // the operator ends when its context is canceled, with all goroutines
	OracleNoPanic            = oracle.NoPanic            // the operator does not panic, and has no data race
	OracleNoSecret           = oracle.NoSecret           // no secret of the workload appears in logs, Events and statuses
	OracleOperatorRuns       = oracle.OperatorRuns       // the operator does not end by itself
	OracleAllowed            = oracle.Allowed            // the operator asks the API server only for what its RBAC rules allow
	OracleMended             = oracle.Mended             // no object that was recorded as stuck ends as it was recorded
	OracleSameAsFresh        = oracle.SameAsFresh        // a changed object ends as one that was created like this
	OracleRecovers           = oracle.Recovers           // an object that is changed back ends as it was
	OracleMistakeReported    = oracle.MistakeReported    // where a mistake in an object stops the operator, a status or an Event says so
	OracleScriptRuns         = oracle.ScriptRuns         // the script can be carried out
)

// A Violation is an oracle that did not hold.
type Violation = oracle.Violation

// A Difference is one thing that is not in both of two worlds, or not the same in both.
type Difference = oracle.Difference

// A Write is a write or a call of the operator, with the lines of code that it comes from.
type Write = report.Write
