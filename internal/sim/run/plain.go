// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Plain writes changes as lines of text, one per change, for pipes and logs:
//
//	12.3s  Job default/hello-28374  Complete
//
// The time is relative to Start. The line of a new object says "created", or "exists" if it was
// there before, and its state. Of the Kubernetes events only warnings are written: the others
// repeat the states.
type Plain struct {
	Writer io.Writer
	Start  time.Time
}

// Print writes the line of a notice, if it has one.
func (p Plain) Print(notice Notice, now time.Time) error {
	text := noticeText(notice)
	if text == "" {
		return nil
	}
	_, err := fmt.Fprintf(p.Writer, "%6.1fs  %s %s  %s\n",
		now.Sub(p.Start).Seconds(), notice.Object.Kind.Kind, notice.Object.FullName(), text)
	return err
}

func noticeText(notice Notice) string {
	state := notice.Object.State.String()
	switch notice.Verb {
	case "deleted":
		return "deleted"
	case "changed":
		if state == "" {
			return "changed"
		}
		return state
	case "event":
		if !notice.Event.Warning {
			return ""
		}
		text := fmt.Sprintf("warning %s: %s", notice.Event.Reason, notice.Event.Message)
		if notice.Event.Count > 1 {
			text += fmt.Sprintf(" (%d times)", notice.Event.Count)
		}
		return text
	default:
		return strings.TrimSuffix(notice.Verb+", "+state, ", ")
	}
}
