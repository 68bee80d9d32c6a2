// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is one thing that goes wrong in a run, at one place. Places are counted in the order in which the run comes to them: writes of
// the operator (without Events and Leases), its reads that go to the API server, its calls of external systems, and the watch events that
// are delivered to it, by kind.
type Fault struct {
	Kind FaultKind
	At   int           // which write, read, call, event or detour; the first is 1
	Of   string        // which kind ("Job.batch"), or which object ("Secret default/credentials")
	By   int           // how many events
	How  string        // which answer
	For  time.Duration // how long
}

// FaultKind says what goes wrong.
type FaultKind int

// The faults at a write.
const (
	CrashBeforeWrite FaultKind = iota + 1 // the process dies, the write never arrives
	CrashAfterWrite                       // the write arrives, the process dies without the answer
	LoseWriteAnswer                       // the write arrives, the answer is an error
	RefuseWrite                           // the write is refused
	TouchBeforeWrite                      // somebody else changes the object just before
	MutateWrite                           // admission changes what is written
	OccupyName                            // an object of that name appears just before, and belongs to somebody else
	LandLate                              // the process dies, and its write arrives when the next one has come to rest
	SecondLeader                          // a second process works beside the first one
	PauseBeforeWrite                      // the process stands still
	PanicAtWrite                          // user code panics
	StopAtWrite                           // the process is told to stop
	RestartInPast                         // the process dies, and the next one sees an older state first
	JumpClock                             // the clock of the process jumps
	Recreate                              // the object is deleted and created again at once, with another UID
	DeleteAndCreate                       // the object is deleted, and created again when everything is at rest
	Vanish                                // the object is deleted although this write, which said 200, had put a finalizer on it
	WipeStatus                            // somebody removes the status
	StripAnnotations                      // somebody removes the annotations and labels that the operator has put there
	Fight                                 // somebody undoes the write, three times
	Withhold                              // the object is not there until everything is at rest

	// The fault at a deletion by a user.
	WithholdAtDeletion

	// The faults at a read.
	RefuseRead
	PanicAtRead

	// The faults at a call of an external system.
	CrashBeforeCall
	CrashInsideCall // the process dies, the effect comes some seconds later
	CrashAfterCall
	LoseCallAnswer
	FailCall
	ThrottleCall
	SlowCall
	HangCall // until the caller gives up
	Outage
	OutageUntilRest
	Drift // somebody changes the resource that the call was about
	PanicAtCall

	// The faults at a watch event.
	Lag
	MissEvent
	DuplicateEvent
	DelayEvent // others overtake it
	CloseWatch
	ExpireWatch

	// What users do.
	TakeDetour
	ProveRest // the operator is made to look at everything again, and is restarted, which must not cause a write
)

// point is where a kind of fault strikes.
type point int

const (
	atWrite point = iota + 1
	atRead
	atCall
	atEvent
	atDetour
	atDeletion
	atRest
)

// kindInfo describes a kind of fault. The pattern is its text form: {at}, {of}, {by}, {how} and {for} stand for the fields of Fault.
type kindInfo struct {
	kind    FaultKind
	point   point
	pattern string
}

var kindTable = []kindInfo{
	{CrashBeforeWrite, atWrite, "crash before write {at}"},
	{CrashAfterWrite, atWrite, "crash after write {at}"},
	{LoseWriteAnswer, atWrite, "lose the answer of write {at}: {how}"},
	{RefuseWrite, atWrite, "refuse write {at}: {how}"},
	{TouchBeforeWrite, atWrite, "touch the object before write {at}"},
	{MutateWrite, atWrite, "mutate write {at}"},
	{OccupyName, atWrite, "occupy the name before write {at}"},
	{LandLate, atWrite, "land write {at} late"},
	{SecondLeader, atWrite, "second leader from write {at}"},
	{PauseBeforeWrite, atWrite, "pause before write {at} for {for}"},
	{PanicAtWrite, atWrite, "panic at write {at}"},
	{StopAtWrite, atWrite, "stop at write {at}"},
	{RestartInPast, atWrite, "restart {by} events in the past of {of} after write {at}"},
	{JumpClock, atWrite, "jump the clock by {for} at write {at}"},
	{Recreate, atWrite, "recreate {of} after write {at}"},
	{DeleteAndCreate, atWrite, "delete and later create {of} after write {at}"},
	{Vanish, atWrite, "lose the object in spite of the finalizer of write {at}"},
	{WipeStatus, atWrite, "wipe the status of {of} after write {at}"},
	{StripAnnotations, atWrite, "strip the annotations of {of} after write {at}"},
	{Fight, atWrite, "fight over write {at}"},
	{Withhold, atWrite, "withhold {of} from write {at}"},
	{WithholdAtDeletion, atDeletion, "withhold {of} from deletion {at}"},
	{RefuseRead, atRead, "refuse read {at}: {how}"},
	{PanicAtRead, atRead, "panic at read {at}"},
	{CrashBeforeCall, atCall, "crash before call {at}"},
	{CrashInsideCall, atCall, "crash inside call {at}"},
	{CrashAfterCall, atCall, "crash after call {at}"},
	{LoseCallAnswer, atCall, "lose the answer of call {at}"},
	{FailCall, atCall, "fail call {at}"},
	{ThrottleCall, atCall, "throttle call {at}"},
	{SlowCall, atCall, "slow call {at} by {for}"},
	{HangCall, atCall, "hang call {at}"},
	{Outage, atCall, "outage from call {at} for {for}"},
	{OutageUntilRest, atCall, "outage from call {at} until rest"},
	{Drift, atCall, "drift after call {at}"},
	{PanicAtCall, atCall, "panic at call {at}"},
	{Lag, atEvent, "lag {of} by {by} from event {at}"},
	{MissEvent, atEvent, "miss event {at} of {of}"},
	{DuplicateEvent, atEvent, "duplicate event {at} of {of}"},
	{DelayEvent, atEvent, "delay event {at} of {of}"},
	{CloseWatch, atEvent, "close the watch of {of} after event {at}"},
	{ExpireWatch, atEvent, "expire the watch of {of} after event {at}"},
	{TakeDetour, atDetour, "detour {at}"},
	{ProveRest, atRest, "resync and restart at rest {at}"},
}

// Kinds returns all kinds of faults.
func Kinds() []FaultKind {
	kinds := make([]FaultKind, len(kindTable))
	for i, k := range kindTable {
		kinds[i] = k.kind
	}
	return kinds
}

func (k FaultKind) info() kindInfo {
	for _, info := range kindTable {
		if info.kind == k {
			return info
		}
	}
	return kindInfo{pattern: fmt.Sprintf("unknown fault %d", int(k))}
}

// String returns the text form of the kind with its places as {at}, {of} and so on.
func (k FaultKind) String() string { return k.info().pattern }

// String returns the text form, which [ParseFault] reads.
func (f Fault) String() string {
	return strings.NewReplacer(
		"{at}", strconv.Itoa(f.At), "{of}", f.Of, "{by}", strconv.Itoa(f.By), "{how}", f.How, "{for}", f.For.String(),
	).Replace(f.Kind.info().pattern)
}

var placeholders = map[string]string{
	`\{at\}`: `(?P<at>\d+)`, `\{of\}`: `(?P<of>[^ ;]+(?: [^ ;]*/[^ ;]*)?)`, `\{by\}`: `(?P<by>\d+)`, `\{how\}`: `(?P<how>[a-z0-9 ]+)`, `\{for\}`: `(?P<for>-?[0-9a-zµ.]+)`,
}

// expressions are the patterns of kindTable, ready to match.
var expressions = func() []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(kindTable))
	for i, info := range kindTable {
		text := regexp.QuoteMeta(info.pattern)
		for placeholder, expression := range placeholders {
			text = strings.Replace(text, placeholder, expression, 1)
		}
		list[i] = regexp.MustCompile("^" + text + "$")
	}
	return list
}()

// ParseFault reads the text form of a fault.
func ParseFault(text string) (Fault, error) {
	text = strings.Join(strings.Fields(text), " ")
	for i, expression := range expressions {
		if match := expression.FindStringSubmatch(text); match != nil {
			return faultOf(kindTable[i].kind, expression, match)
		}
	}
	return Fault{}, fmt.Errorf("unknown fault %q%s", text, near(text))
}

func faultOf(kind FaultKind, expression *regexp.Regexp, match []string) (Fault, error) {
	f := Fault{Kind: kind}
	var errs [3]error
	for i, name := range expression.SubexpNames() {
		switch name {
		case "at":
			f.At, errs[0] = strconv.Atoi(match[i])
		case "of":
			f.Of = match[i]
		case "by":
			f.By, errs[1] = strconv.Atoi(match[i])
		case "how":
			f.How = match[i]
		case "for":
			f.For, errs[2] = time.ParseDuration(match[i])
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Fault{}, fmt.Errorf("reading fault %q: %w", match[0], err)
	}
	if answers, ok := answersOf[kind]; ok && !slices.Contains(answers, f.How) {
		return Fault{}, fmt.Errorf("fault %q: unknown answer %q, known are %s", match[0], f.How, strings.Join(answers, ", "))
	}
	return f, nil
}

// near suggests the kinds of faults that begin like text.
func near(text string) string {
	first, _, _ := strings.Cut(text, " ")
	var list []string
	for _, info := range kindTable {
		if strings.HasPrefix(info.pattern, first+" ") {
			list = append(list, strconv.Quote(info.pattern))
		}
	}
	if len(list) == 0 {
		return `: a fault reads like "crash after write 3"; docs/simulator.md lists them`
	}
	return ": did you mean " + strings.Join(list, " or ") + "?"
}

// answersOf are the answers that a fault can give.
var answersOf = map[FaultKind][]string{
	LoseWriteAnswer: {"timeout", "500", "reset"},
	RefuseWrite:     {"409", "429", "403", "404", "422", "500", "webhook"},
	RefuseRead:      {"429", "403", "500", "timeout"},
}

// A Plan is the faults of one run, and the seed of the order in which things happen that could happen in any order. Seed 0 is the order in
// which watch events come at once.
type Plan struct {
	Seed   uint64
	Faults []Fault
}

// String returns the text form, which [ParsePlan] reads: "seed 7; crash after write 3; lag Job.batch by 2 from event 1".
func (p Plan) String() string {
	var parts []string
	if p.Seed != 0 {
		parts = append(parts, "seed "+strconv.FormatUint(p.Seed, 10))
	}
	for _, f := range p.Faults {
		parts = append(parts, f.String())
	}
	if len(parts) == 0 {
		return "no fault"
	}
	return strings.Join(parts, "; ")
}

// ParsePlan reads the text form of a plan.
func ParsePlan(text string) (Plan, error) {
	var p Plan
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		if part == "" || part == "no fault" {
			continue
		}
		if number, ok := strings.CutPrefix(part, "seed "); ok {
			seed, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
			if err != nil {
				return Plan{}, fmt.Errorf("plan %q: the seed %q is not a number", text, number)
			}
			p.Seed = seed
			continue
		}
		f, err := ParseFault(part)
		if err != nil {
			return Plan{}, fmt.Errorf("plan %q: %w", text, err)
		}
		p.Faults = append(p.Faults, f)
	}
	return p, nil
}
