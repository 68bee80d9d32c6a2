// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestShowInAPipeIsALineEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		stop := Show(&out, 0, "waiting", nil)
		time.Sleep(25 * time.Second) // of the bubble
		stop()
		stop()
		if got, want := out.String(), "waiting\nwaiting (10s)\nwaiting (20s)\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestShowInATerminalIsOneLineThatVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		begun := time.Now()
		stop := show(&out, true, 0, "building", func() string { return strings.Repeat("x", int(time.Since(begun)/time.Millisecond)) })
		time.Sleep(300 * time.Millisecond) // of the bubble
		stop()
		want := "\r\x1b[Kbuilding\r\x1b[Kbuilding: " + strings.Repeat("x", lineWidth-len("building: ")) + "\r\x1b[K"
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestShowSaysNothingOfWhatIsFast(t *testing.T) {
	for _, terminal := range map[string]bool{"terminal": true, "pipe": false} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			stop := show(&out, terminal, WhenSlow, "building", nil)
			time.Sleep(WhenSlow - time.Millisecond) // of the bubble
			stop()
			if out.Len() > 0 {
				t.Errorf("got %q, want nothing", &out)
			}
			stop = show(&out, terminal, WhenSlow, "building", nil)
			time.Sleep(WhenSlow + time.Millisecond)
			stop()
			if !strings.Contains(out.String(), "building (5s)") {
				t.Errorf("got %q of what is slow", &out)
			}
		})
	}
}

type display struct{ bytes.Buffer }

func (d *display) Show(what string, _ func() string) (stop func()) {
	io.WriteString(d, what) //nolint:errcheck // never fails
	return func() { d.Reset() }
}

func TestShowLeavesADisplayToItself(t *testing.T) {
	d := new(display)
	stop := Show(d, time.Hour, "building", nil)
	if d.String() != "building" {
		t.Errorf("got %q", d)
	}
	stop()
	if d.Len() > 0 {
		t.Errorf("got %q at the end", d)
	}
}
