// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Plain tells changes as lines of text, one per change, for pipes and logs:
//
//	12.3s  Job default/hello-28374  Complete
//
// The time is relative to Start. An object that is new says "created" (or "exists", when it was there before) with its
// state if it has one; of the Kubernetes events only the warnings are told, as the others repeat what the states say.
type Plain struct {
	Writer io.Writer
	Start  time.Time
}

// Tell writes the line of a notice, if it has one.
func (p Plain) Tell(notice Notice, now time.Time) error {
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
