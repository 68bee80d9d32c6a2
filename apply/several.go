// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/failure"
)

// several are the failures of several objects. Unlike those of errors.Join, they are on one line:
// a Kubernetes event and a table show no more than that.
type several []error

func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (s several) Unwrap() []error { return s }

// join joins errors as errors.Join does.
func join(errs ...error) error {
	var all several
	for _, err := range errs {
		if more, ok := err.(several); ok { //nolint:errorlint // one that is wrapped has a text of its own
			all = append(all, more...)
		} else if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return slices.Clip(all)
}

// mostCauses is how many failures a condition names.
const mostCauses = 3

// An invalidError is the answer to an object that is not valid, without the values of fields that are
// too long to be read: the API server prints a whole Pod template in the syntax of Go.
type invalidError struct {
	error
	text string
}

func (e *invalidError) Error() string { return e.text }
func (e *invalidError) Unwrap() error { return e.error }

// longestPart is how many bytes of a value are worth reading.
const longestPart = 60

// readable returns err with a text that can be read.
func readable(err error) error {
	text := err.Error()
	for _, cause := range causesOf(err) {
		kind, rest, _ := strings.Cut(cause.Message, ": ") // "Invalid value: {...}: field is immutable"
		end := strings.LastIndex(rest, ": ")
		if end <= longestPart {
			continue
		}
		short := kind + ": " + strings.ToValidUTF8(rest[:longestPart], "") + "..." + rest[end:]
		text = strings.ReplaceAll(text, cause.Message, short)
	}
	if text == err.Error() {
		return err
	}
	return &invalidError{err, text}
}

// textOf returns what a condition says of a failure: what has failed, each with its remedy if it
// can't be retried. A remedy that all of them have is said once.
func textOf(err error) string {
	causes, ok := err.(several) //nolint:errorlint // one that is wrapped has a text of its own
	if !ok {
		causes = several{err}
	}
	common := remedyOf(causes[0])
	if len(causes) == 1 || slices.ContainsFunc(causes, func(cause error) bool { return remedyOf(cause) != common }) {
		common = ""
	}
	var texts []string
	for i, cause := range causes {
		if i == mostCauses {
			texts = append(texts, fmt.Sprintf("and %d more", len(causes)-mostCauses))
			break
		}
		text := cause.Error()
		if remedy := remedyOf(cause); remedy != "" && common == "" {
			text += ": " + remedy
		}
		texts = append(texts, text)
	}
	text := strings.Join(texts, "; ")
	if common != "" {
		text += " (for each: " + common + ")"
	}
	return text
}

// remedyOf returns the remedy of a failure that can't be retried, and an empty text for another
// one.
func remedyOf(err error) string {
	if classified := failure.Classify(err); classified.Class == failure.ClassTerminal {
		return classified.Remedy
	}
	return ""
}
