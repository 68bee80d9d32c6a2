// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"fmt"
	"strings"
)

// failures are those of the resources of a system, grouped by their messages: of a system that does not
// answer, all are the same.
type failures struct{ groups []*failureGroup }

// failureGroup is what failed in the same way.
type failureGroup struct {
	like string // the message without the id
	of   []string
	err  error // the first one
}

const (
	mostGroups  = 10 // that are shown
	mostInGroup = 3
)

// add adds the failure of a resource.
func (f *failures) add(r Resource, err error) {
	like, who := strings.ReplaceAll(err.Error(), r.ID, ""), r.ID
	if r.Scope != "" {
		who += " in " + r.Scope
	}
	for _, g := range f.groups {
		if g.like == like {
			g.of = append(g.of, who)
			return
		}
	}
	f.groups = append(f.groups, &failureGroup{like, []string{who}, err})
}

// err returns all as one error of one line, nil if there is none.
func (f *failures) err() error {
	if f == nil || len(f.groups) == 0 {
		return nil
	}
	var all, more []error
	rest := 0
	for n, g := range f.groups {
		if n < mostGroups {
			all = append(all, g.text())
		} else {
			rest += len(g.of)
			more = append(more, g.err)
		}
	}
	if rest > 0 {
		all = append(all, &plainError{fmt.Sprintf("%d more resources, for other reasons", rest), more})
	}
	texts := make([]string, len(all))
	for n, err := range all {
		texts[n] = err.Error()
	}
	return &plainError{strings.Join(texts, "; "), all}
}

func (g *failureGroup) text() error {
	shown := strings.Join(g.of[:min(len(g.of), mostInGroup)], ", ")
	if others := len(g.of) - mostInGroup; others > 0 {
		shown += fmt.Sprintf(" and %d others", others)
	}
	return fmt.Errorf("%s: %w", shown, g.err)
}

// plainError is several errors with a text of its own: that of errors.Join has a line for each.
type plainError struct {
	text string
	all  []error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() []error { return e.all }
