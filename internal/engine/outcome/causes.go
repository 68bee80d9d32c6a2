// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"strings"
)

// LongestText is how many bytes the text of joined errors has before it says how many more there
// are: several times what fits into a condition or an event.
const LongestText = 4096

// Causes is the error of several parts of a reconcile, on one line. It is always used as a pointer,
// so that two of them can be compared.
type Causes struct{ errs []error }

// JoinErrors returns one error for all of errs: nil for none, the error itself for one, and
// otherwise a [*Causes]. It keeps errs, which must not be changed afterwards.
func JoinErrors(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	default:
		return &Causes{errs}
	}
}

// CausesOf returns what [JoinErrors] joined into err: none for nil, and err alone if it is another
// error.
func CausesOf(err error) []error {
	if err == nil {
		return nil
	}
	if c, ok := err.(*Causes); ok { //nolint:errorlint // only a list as such is taken apart
		return c.errs
	}
	return []error{err}
}

// Error returns the texts of the causes. Each is whole; those after the first [LongestText] bytes
// are counted, not printed.
func (c *Causes) Error() string {
	var text strings.Builder
	for i, err := range c.errs {
		if text.Len() >= LongestText {
			fmt.Fprintf(&text, "; and %d more", len(c.errs)-i)
			break
		}
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(err.Error())
	}
	return text.String()
}

// Unwrap returns every cause.
func (c *Causes) Unwrap() []error { return c.errs }
