// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressInAPipeIsALineEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		begin := time.Now()
		stop := newProgress(&out).show(func() string { return fmt.Sprintf("at %s", time.Since(begin)) })
		time.Sleep(25 * time.Second) // of the bubble
		stop()
		stop()
		if got, want := out.String(), "at 0s\nat 10s\nat 20s\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestProgressInATerminalIsOneLineThatVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out)
		p.terminal = true
		stop := p.show(func() string { return "working" })
		time.Sleep(300 * time.Millisecond) // of the bubble
		stop()
		if got, want := out.String(), "\r\x1b[Kworking\r\x1b[Kworking\r\x1b[K"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestCompilationCountsPackagesAndKeepsWords(t *testing.T) {
	c := &compilation{total: 3, started: time.Now(), words: newTail(5)}
	io.WriteString(c, "fmt\nk8s.io/api/core/v1\n# example.com/broken\nbroken.go:3:1: syntax ") //nolint:errcheck // never fails
	io.WriteString(c, "error\n")                                                               //nolint:errcheck // never fails
	if got, want := c.String(), "building the control plane: 2 of 3 packages compiled (0s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := c.words.String(), "# example.com/broken\nbroken.go:3:1: syntax error"; got != want {
		t.Errorf("words = %q, want %q", got, want)
	}
	io.WriteString(c, "example.com/last\n") //nolint:errcheck // never fails
	if got, want := c.String(), "building the control plane: linking (0s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
