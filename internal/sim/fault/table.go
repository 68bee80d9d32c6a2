// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"strings"
	"time"
)

// Kind says what goes wrong.
type Kind int

// The faults at a write.
const (
	CrashBeforeWrite       Kind = iota + 1 // the process dies, the write never arrives
	CrashAfterWrite                        // the write arrives, the process dies without the answer
	LoseWriteAnswer                        // the write arrives, the answer is an error
	RefuseWrite                            // the write is refused
	LandLate                               // the process dies, the write arrives later
	SecondLeader                           // a second process works beside the first one
	PanicAtWrite                           // user code panics
	StopAtWrite                            // the context of the process is canceled
	PauseBeforeWrite                       // the process stands still
	TouchBeforeWrite                       // another client changes the object just before
	MutateWrite                            // admission changes what is written
	OccupyName                             // an object of another client has the name
	OccupyNameByController                 // an object of another controller has it
	LeaveOrphan                            // an earlier owner has left the same object
	DeleteBeforeWrite                      // another client deletes the object just before
	Fight                                  // another controller undoes the write, three times
	Vanish                                 // the object is deleted in spite of the finalizer of the write
	RestartInPast                          // like a crash, then a stale first list; see Premise
	JumpClock                              // the clock of the process jumps
	Recreate                               // the object is deleted, and created again at once
	DeleteAndCreate                        // the same, but created when everything is idle
	WipeStatus                             // another client removes the status
	StripAnnotations                       // another client removes what its user has not written
	Withhold                               // the object is not there until everything is idle

	// The fault at a deletion by a user.
	WithholdAtDeletion

	// The faults at a read.
	PanicAtRead
	RefuseRead

	// The faults at a call of an external system.
	CrashBeforeCall
	CrashAfterCall
	LoseCallAnswer
	FailCall
	ThrottleCall
	SlowCall
	HangCall // until the caller gives up
	Outage
	OutageUntilIdle
	Drift // the resource that the call was about is changed by another client
	PanicAtCall
	CrashInsideCall // the process dies, the effect comes some seconds later

	// The faults at a watch event.
	DelayWatch // the watch stays some events behind
	MissEvent
	DuplicateEvent
	DelayEvent // others overtake it
	CloseWatch
	ExpireWatch

	// What users do.
	TakeDetour
	ProveIdle // a resync and a restart of the idle operator, which must not cause a write
)

// A Likelihood says how often operators meet a kind of fault.
type Likelihood int

// The likelihoods.
const (
	LikelihoodLow    Likelihood = iota + 1 // needs a rare coincidence, or an uncommon configuration
	LikelihoodMedium                       // most clusters see it once in a while
	LikelihoodHigh                         // every operator meets it in its normal life
)

// String returns "low", "medium" or "high".
func (l Likelihood) String() string {
	switch l {
	case LikelihoodLow:
		return "low"
	case LikelihoodMedium:
		return "medium"
	case LikelihoodHigh:
		return "high"
	}
	return fmt.Sprintf("unknown likelihood %d", int(l))
}

// withoutStreaming is the premise of a first list that is stale. An informer that streams its first
// list asks for the state of etcd, not for that of whichever API server answers.
const withoutStreaming = "possible only without streaming lists"

// entry is everything about a kind of fault that does not need a running simulation. Where a fault
// has several values of a parameter, each is a plan of its own.
type entry struct {
	kind  Kind
	point Point

	// pattern is the text form: {at}, {of}, {by}, {how} and {for} stand for the fields of Fault.
	pattern string

	when    func(*Place) bool // at which places of its point it can strike; nil: at all
	atStart bool              // also before the operator starts, as write 0
	of      target            // values of {of}
	by      []int             // values of {by}
	answers []string          // values of {how}
	times   []time.Duration   // values of {for}

	// can reports whether a server can give an answer at a place of the point. nil: always.
	can func(p *Place, how string) bool

	likelihood Likelihood
	premise    string // without which the fault can't happen; "" for most

	// What the fault changes about what can be expected of the operator.
	addsWork bool // more objects may be created and deleted than without the fault
	hides    bool // a process does not see the present state for a while
	doubles  bool // two processes work at the same time
	alone    bool // no operator can survive it together with another fault

}

// table has all kinds of faults. Within a place, plans are tried in its order.
var table = []entry{
	{kind: CrashBeforeWrite, point: AtWrite, pattern: "crash before write {at}", likelihood: LikelihoodHigh},
	{kind: CrashAfterWrite, point: AtWrite, pattern: "crash after write {at}", likelihood: LikelihoodHigh},
	{kind: LoseWriteAnswer, point: AtWrite, pattern: "lose the answer of write {at}: {how}", answers: []string{"timeout", "500", "reset"}, likelihood: LikelihoodMedium},
	{kind: RefuseWrite, point: AtWrite, pattern: "refuse write {at}: {how}", answers: []string{"409", "429", "403", "422", "500", "webhook"}, can: (*Place).refuses, likelihood: LikelihoodHigh},
	{kind: LandLate, point: AtWrite, pattern: "land write {at} late", likelihood: LikelihoodLow},
	{kind: SecondLeader, point: AtWrite, pattern: "second leader from write {at}", doubles: true, likelihood: LikelihoodLow},
	{kind: PanicAtWrite, point: AtWrite, pattern: "panic at write {at}", likelihood: LikelihoodLow},
	{kind: StopAtWrite, point: AtWrite, pattern: "stop at write {at}", likelihood: LikelihoodHigh},
	{kind: PauseBeforeWrite, point: AtWrite, pattern: "pause before write {at} for {for}", times: []time.Duration{2 * time.Minute}, likelihood: LikelihoodMedium},
	{kind: TouchBeforeWrite, point: AtWrite, pattern: "touch the object before write {at}", when: (*Place).exists, addsWork: true, likelihood: LikelihoodHigh},
	{kind: MutateWrite, point: AtWrite, pattern: "mutate write {at}", when: (*Place).storesObject, addsWork: true, likelihood: LikelihoodMedium},
	{kind: OccupyName, point: AtWrite, pattern: "occupy the name before write {at}", when: (*Place).takesName, addsWork: true, likelihood: LikelihoodMedium},
	{kind: OccupyNameByController, point: AtWrite, pattern: "occupy the name before write {at} by another controller", when: (*Place).takesName, addsWork: true, likelihood: LikelihoodMedium},
	{kind: LeaveOrphan, point: AtWrite, pattern: "leave an orphan before write {at}", when: (*Place).createsOwned, addsWork: true, likelihood: LikelihoodMedium},
	{kind: DeleteBeforeWrite, point: AtWrite, pattern: "delete the object before write {at}", when: (*Place).writesChild, addsWork: true, likelihood: LikelihoodMedium},
	{kind: Fight, point: AtWrite, pattern: "fight over write {at}", when: (*Place).changesObject, addsWork: true, likelihood: LikelihoodMedium},
	{kind: Vanish, point: AtWrite, pattern: "lose the object in spite of the finalizer of write {at}", when: (*Place).addsFinalizer, addsWork: true, alone: true, likelihood: LikelihoodLow},
	{kind: RestartInPast, point: AtWrite, pattern: "restart {by} events in the past of {of} after write {at}", of: watchedKinds, by: []int{1, 4}, hides: true, likelihood: LikelihoodLow, premise: withoutStreaming},
	{kind: JumpClock, point: AtWrite, pattern: "jump the clock by {for} at write {at}", when: (*Place).usesClock, times: []time.Duration{time.Hour, -time.Hour}, addsWork: true, likelihood: LikelihoodLow},
	{kind: Recreate, point: AtWrite, pattern: "recreate {of} after write {at}", of: userObjects, addsWork: true, likelihood: LikelihoodHigh},
	{kind: DeleteAndCreate, point: AtWrite, pattern: "delete and later create {of} after write {at}", of: userObjects, addsWork: true, likelihood: LikelihoodHigh},
	{kind: WipeStatus, point: AtWrite, pattern: "wipe the status of {of} after write {at}", of: objectsWithStatus, addsWork: true, likelihood: LikelihoodLow},
	{kind: StripAnnotations, point: AtWrite, pattern: "strip the annotations of {of} after write {at}", of: annotatedObjects, addsWork: true, likelihood: LikelihoodMedium},
	{kind: Withhold, point: AtWrite, pattern: "withhold {of} from write {at}", of: prerequisites, atStart: true, addsWork: true, likelihood: LikelihoodMedium},

	{kind: WithholdAtDeletion, point: AtDeletion, pattern: "withhold {of} from deletion {at}", of: prerequisites, addsWork: true, likelihood: LikelihoodMedium},

	{kind: PanicAtRead, point: AtRead, pattern: "panic at read {at}", likelihood: LikelihoodLow},
	{kind: RefuseRead, point: AtRead, pattern: "refuse read {at}: {how}", answers: []string{"429", "403", "500", "timeout"}, likelihood: LikelihoodHigh},

	{kind: CrashBeforeCall, point: AtCall, pattern: "crash before call {at}", likelihood: LikelihoodHigh},
	{kind: CrashAfterCall, point: AtCall, pattern: "crash after call {at}", likelihood: LikelihoodHigh},
	{kind: LoseCallAnswer, point: AtCall, pattern: "lose the answer of call {at}", likelihood: LikelihoodMedium},
	{kind: FailCall, point: AtCall, pattern: "fail call {at}", likelihood: LikelihoodHigh},
	{kind: ThrottleCall, point: AtCall, pattern: "throttle call {at}", likelihood: LikelihoodHigh},
	{kind: SlowCall, point: AtCall, pattern: "slow call {at} by {for}", times: []time.Duration{90 * time.Second}, likelihood: LikelihoodHigh},
	{kind: HangCall, point: AtCall, pattern: "hang call {at}", likelihood: LikelihoodMedium},
	{kind: Outage, point: AtCall, pattern: "outage from call {at} for {for}", times: []time.Duration{10 * time.Minute}, likelihood: LikelihoodMedium},
	{kind: OutageUntilIdle, point: AtCall, pattern: "outage from call {at} until idle", likelihood: LikelihoodMedium},
	{kind: Drift, point: AtCall, pattern: "drift after call {at}", addsWork: true, likelihood: LikelihoodMedium},
	{kind: PanicAtCall, point: AtCall, pattern: "panic at call {at}", likelihood: LikelihoodLow},
	{kind: CrashInsideCall, point: AtCall, pattern: "crash inside call {at}", when: (*Place).mutates, likelihood: LikelihoodMedium},

	{kind: DelayWatch, point: AtEvent, pattern: "delay the watch of {of} by {by} from event {at}", of: eventKind, by: []int{1, 3}, hides: true, likelihood: LikelihoodHigh},
	{kind: MissEvent, point: AtEvent, pattern: "miss event {at} of {of}", of: eventKind, hides: true, likelihood: LikelihoodMedium},
	{kind: DuplicateEvent, point: AtEvent, pattern: "duplicate event {at} of {of}", of: eventKind, likelihood: LikelihoodMedium},
	{kind: DelayEvent, point: AtEvent, pattern: "delay event {at} of {of}", of: eventKind, hides: true, likelihood: LikelihoodHigh},
	{kind: CloseWatch, point: AtEvent, pattern: "close the watch of {of} after event {at}", of: eventKind, likelihood: LikelihoodHigh},
	{kind: ExpireWatch, point: AtEvent, pattern: "expire the watch of {of} after event {at}", of: eventKind, likelihood: LikelihoodHigh},

	{kind: TakeDetour, point: AtDetour, pattern: "detour {at}", addsWork: true, likelihood: LikelihoodHigh},
	{kind: ProveIdle, point: WhenIdle, pattern: "resync and restart at checkpoint {at}", likelihood: LikelihoodHigh},
}

// Kinds returns all kinds of faults, in the order of the table.
func Kinds() []Kind {
	kinds := make([]Kind, len(table))
	for i, e := range table {
		kinds[i] = e.kind
	}
	return kinds
}

func (k Kind) entry() *entry {
	for i := range table {
		if table[i].kind == k {
			return &table[i]
		}
	}
	return &entry{pattern: fmt.Sprintf("unknown fault %d", int(k))}
}

// String returns the text form of the kind with its parameters as {at}, {of} and so on.
func (k Kind) String() string { return k.entry().pattern }

// Plain returns the text form of all faults of the kind with an answer: "delay the watch of X by N".
func (k Kind) Plain(how string) string {
	return strings.NewReplacer("{how}", how, "{of}", "X", "{at}", "N", "{by}", "N", "{for}", "N").Replace(k.String())
}

// Point returns where faults of the kind strike.
func (k Kind) Point() Point { return k.entry().point }

// AddsWork reports whether a fault of the kind makes it right for an operator to create and delete
// more objects than without the fault.
func (k Kind) AddsWork() bool { return k.entry().addsWork }

// Likelihood returns how often operators meet faults of the kind. What a likely fault shows is worth
// more attention than what a rare one shows.
func (k Kind) Likelihood() Likelihood { return k.entry().likelihood }

// Note returns what must be the case for a fault of the kind to be possible at all, such as
// "possible only without streaming lists". It is empty for most kinds.
func (k Kind) Note() string { return k.entry().premise }
