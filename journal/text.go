// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits for one event.
const (
	mostText  = 4 << 10 // bytes of a text
	mostTexts = 32      // of one kind
)

// texts are the texts of a history, each once, however many of its entries have it.
type texts struct {
	all   []text
	bytes int
}

type text struct {
	string
	entries int
}

const textBytes = 48 // with its place among the others

// keep returns the shared text, and counts one more use.
func (t *texts) keep(s string) string {
	if s == "" {
		return ""
	}
	s = cutText(s)
	for i := range t.all {
		if t.all[i].string == s {
			t.all[i].entries++
			return t.all[i].string
		}
	}
	s = strings.Clone(s) // it may be part of something large
	t.all = append(t.all, text{s, 1})
	t.bytes += textBytes + sized(len(s))
	return s
}

// release is called once for each keep, with the result of keep, and returns it.
func (t *texts) release(s string) string {
	i := slices.IndexFunc(t.all, func(o text) bool { return o.string == s })
	if i < 0 {
		return s // the empty one
	}
	if t.all[i].entries--; t.all[i].entries == 0 {
		t.all[i] = t.all[len(t.all)-1]
		t.all[len(t.all)-1] = text{}
		t.all = t.all[:len(t.all)-1]
		t.bytes -= textBytes + sized(len(s))
	}
	return s
}

// clip frees the capacity of texts that were released.
func (t *texts) clip() { t.all = slices.Clip(append([]text(nil), t.all...)) }

// cutText returns the beginning of a text that is too long, with a note. Cutting again changes
// nothing.
func cutText(s string) string {
	if len(s) <= mostText {
		return s
	}
	n := mostText - 32 // room for the note
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:n], len(s)-n)
}

// An errorText is an error without what it points to.
type errorText struct {
	text   string
	joined []error // the errors that it joins, all of them without errors of their own
}

func (e *errorText) Error() string   { return e.text }
func (e *errorText) Unwrap() []error { return e.joined }

const errorTextBytes = 48

func errorBytes(err error) int {
	e, ok := err.(*errorText) //nolint:errorlint // only kept errors are counted
	if !ok {
		return 0
	}
	return errorTextBytes + sized(len(e.joined)*(stringBytes+errorTextBytes))
}

// textOf returns an error without what it points to.
func textOf(err error) error {
	if err == nil {
		return nil
	}
	e := &errorText{text: err.Error()}
	for _, cause := range leaves(nil, err) {
		if cause != err { //nolint:errorlint // the same error joins nothing
			e.joined = append(e.joined, &errorText{text: cause.Error()})
		}
	}
	return e
}

// leaves appends to found the errors that err joins and that join no others; err itself if it joins
// none.
func leaves(found []error, err error) []error {
	for e := err; e != nil; {
		switch x := e.(type) { //nolint:errorlint // the chain is walked node by node
		case interface{ Unwrap() []error }:
			return leavesOf(found, err, x.Unwrap())
		case interface{ Errors() []error }: // an Aggregate of k8s.io/apimachinery
			return leavesOf(found, err, x.Errors())
		case interface{ Unwrap() error }:
			e = x.Unwrap()
		default:
			e = nil
		}
	}
	return append(found, err)
}

func leavesOf(found []error, err error, joined []error) []error {
	if len(joined) == 0 {
		return append(found, err)
	}
	for _, e := range joined {
		if e != nil && len(found) < mostTexts {
			found = leaves(found, e)
		}
	}
	return found
}

// withoutErrors returns the event with each error replaced by its text.
func withoutErrors(event Event) Event {
	switch e := event.(type) {
	case StepEnded:
		return withText(event, &e, &e.Outcome.Err)
	case ActionEnded:
		return withText(event, &e, &e.Outcome.Err)
	case Finished:
		return withText(event, &e, &e.Outcome.Err)
	case Read:
		return withText(event, &e, &e.Err)
	case Wrote:
		return withText(event, &e, &e.Err)
	case Called:
		return withText(event, &e, &e.Err)
	case Changed:
		return withText(event, &e, &e.Err)
	default:
		return event
	}
}

// withText returns an event, whose struct and error are these, with the text of the error. One
// without an error is returned as it is: to make an Event of a struct again would copy it.
func withText[E Event](event Event, e *E, err *error) Event {
	if *err == nil {
		return event
	}
	*err = textOf(*err)
	return *e
}

// manyTexts are events that replace their texts themselves: Changed, Kept and ConditionChanged.
type manyTexts interface {
	withTexts(f func(string) string) Event
}

// withTexts returns the event with each text that may differ between reconciles replaced by f of
// it.
func withTexts(event Event, f func(string) string) Event {
	switch e := event.(type) {
	case Triggered:
		e.Cause = e.Cause.withTexts(f)
		return e
	case Started:
		causes := slices.Clone(e.Causes)
		for i := range causes {
			causes[i] = causes[i].withTexts(f)
		}
		e.Causes, e.ResourceVersion, e.Finalizer = causes, f(e.ResourceVersion), f(e.Finalizer)
		return e
	case StepBegan:
		e.Step = f(e.Step)
		return e
	case StepLate:
		e.Step = f(e.Step)
		return e
	case StepEnded:
		e.Step, e.Outcome = f(e.Step), e.Outcome.withTexts(f)
		return e
	case StepSkipped:
		e.Step, e.After = f(e.Step), f(e.After)
		return e
	case ActionBegan:
		e.Step, e.Action = f(e.Step), f(e.Action)
		return e
	case ActionEnded:
		e.Step, e.Action, e.Outcome = f(e.Step), f(e.Action), e.Outcome.withTexts(f)
		return e
	case ActionBlocked:
		e.Step, e.Action, e.By = f(e.Step), f(e.Action), eachText(e.By, f)
		return e
	case Read:
		e.Step, e.Object, e.Err = f(e.Step), e.Object.withTexts(f), errorWithTexts(e.Err, f)
		return e
	case Wrote:
		e.Step, e.Object, e.Fields, e.Err = f(e.Step), e.Object.withTexts(f), eachText(e.Fields, f), errorWithTexts(e.Err, f)
		return e
	case Called:
		e.Step, e.What, e.Err = f(e.Step), f(e.What), errorWithTexts(e.Err, f)
		return e
	case manyTexts:
		return e.withTexts(f)
	case Gated:
		e.Reason, e.Message = f(e.Reason), f(e.Message)
		return e
	case HotLoop:
		e.Fields, e.Managers = eachText(e.Fields, f), eachText(e.Managers, f)
		return e
	case Unwatched:
		e.Step, e.Object = f(e.Step), e.Object.withTexts(f)
		return e
	case Finished:
		e.Outcome = e.Outcome.withTexts(f)
		return e
	default:
		return event
	}
}

func (o Object) withTexts(f func(string) string) Object {
	o.Namespace, o.Name = f(o.Namespace), f(o.Name)
	return o
}

func (c Cause) withTexts(f func(string) string) Cause {
	c.Object = c.Object.withTexts(f)
	return c
}

func (o Outcome) withTexts(f func(string) string) Outcome {
	o.Err, o.Remedy, o.Stalled = errorWithTexts(o.Err, f), f(o.Remedy), f(o.Stalled)
	if len(o.Waits) > 0 {
		waits := slices.Clone(o.Waits[:min(len(o.Waits), mostTexts)])
		for i := range waits {
			waits[i].For = f(waits[i].For)
		}
		o.Waits = waits
	}
	return o
}

func errorWithTexts(err error, f func(string) string) error {
	e, ok := err.(*errorText) //nolint:errorlint // the others were replaced by textOf
	if !ok {
		return err
	}
	replaced := &errorText{text: f(e.text)}
	for _, joined := range e.joined {
		replaced.joined = append(replaced.joined, errorWithTexts(joined, f))
	}
	return replaced
}

func eachText(all []string, f func(string) string) []string {
	if len(all) == 0 {
		return nil
	}
	replaced := make([]string, min(len(all), mostTexts))
	for i := range replaced {
		replaced[i] = f(all[i])
	}
	return replaced
}
