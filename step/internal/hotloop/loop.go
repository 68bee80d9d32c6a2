// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// A Loop is a hot loop that was found.
type Loop struct {
	Write    *track.Write
	Paths    []string // that are fought over; none if it is the object itself, or an echo
	Managers []string // the other field managers of a fight, as far as they are known
	Fight    bool
	First    bool // it was not found in the reconciles before
	Count    int
	Within   time.Duration
}

// text says what is written again and again, by which other client, and the remedy.
func (l *Loop) text(owner string) string {
	w, managers := l.Write, l.Managers
	what := cmp.Or(strings.Join(l.Paths, ", "), w.Verb) + " of " + w.Object.String()
	deleted := l.Fight && len(l.Paths) == 0 && w.Verb == "delete"
	switch {
	case !l.Fight:
		return what + " is written again and again: a step gives it another value each time"
	case len(l.Paths) == 0 && !deleted:
		return w.Object.String() + " is created again and again: another client deletes it, find out which one and stop one of the two"
	case deleted && len(managers) == 0:
		return w.Object.String() + " is deleted again and again: another client creates it, find out which one and stop one of the two"
	case deleted:
		return w.Object.String() + " is deleted again and again: field manager " + track.Quote(managers) + " creates it, stop one of the two"
	case slices.Equal(managers, []string{owner}):
		return what + " is written again and again: field manager " + track.Quote(managers) +
			" writes it too, which is the name of this controller: look for a second copy of the operator and stop one of the two"
	case len(managers) > 0 && w.Verb == "apply" && w.Subresource == "":
		return what + " is written again and again: field manager " + track.Quote(managers) +
			" writes it too, stop one of the two, or leave the field to it (a child: apply.Theirs)"
	case len(managers) > 0:
		return what + " is written again and again: field manager " + track.Quote(managers) + " writes it too, stop one of the two"
	default:
		return what + " is written again and again: another client undoes it, which the managed fields do not name: find out which one and stop one of the two"
	}
}
