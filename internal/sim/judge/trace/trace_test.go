// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A trace reads as a table in the order in which things happened, with virtual time.
func TestText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trace := New()
		trace.Add("operator", "start", "")
		time.Sleep(1500*time.Millisecond + time.Microsecond)
		trace.Add("operator", "write 1", "create configmaps default/x -> 201")
		trace.Add("user", "write", "delete configmaps default/x -> 200")
		time.Sleep(time.Hour)
		trace.Add("sim", "fault", "crash after write 1")
		want := "" +
			"          0s  operator           start      \n" +
			"        1.5s  operator           write 1    create configmaps default/x -> 201\n" +
			"        1.5s  user               write      delete configmaps default/x -> 200\n" +
			"    1h0m1.5s  sim                fault      crash after write 1\n"
		if diff := cmp.Diff(want, trace.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// Entries are copies: those that are read do not change with the trace.
func TestEntries(t *testing.T) {
	trace := New()
	trace.Add("user", "script", "one")
	entries := trace.Entries()
	trace.Add("user", "script", "two")
	if len(entries) != 1 || entries[0].Text != "one" || trace.Len() != 2 {
		t.Errorf("%d entries read, %d in the trace, want 1 and 2", len(entries), trace.Len())
	}
	entries[0].Text = "changed"
	if got := trace.Entries()[0].Text; got != "one" {
		t.Errorf("the trace was changed from outside: %q", got)
	}
}

// The log is not a part of the trace: goroutines that run at the same time log in any order.
func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trace := New()
		log := trace.Logger("operator-2")
		time.Sleep(time.Second)
		log.Info("starting", "n", 1)
		log.WithName("widget").Error(errors.New("oh"), "reconciling")
		want := []string{
			`          1s  operator-2         "level"=0 "msg"="starting" "n"=1`,
			`          1s  operator-2         widget "msg"="reconciling" "error"="oh"`,
		}
		if diff := cmp.Diff(want, trace.Logs()); diff != "" {
			t.Error(diff)
		}
		if trace.Len() != 0 {
			t.Errorf("the log is in the trace:\n%s", trace)
		}
	})
}

func TestAnyGoroutineMayAdd(t *testing.T) {
	trace := New()
	log := trace.Logger("operator")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 100 {
				trace.Add("operator", "event", "x")
				log.Info("x")
				_, _, _ = trace.Len(), trace.String(), trace.Logs()
			}
		})
	}
	group.Wait()
	if trace.Len() != 400 || len(trace.Logs()) != 400 {
		t.Errorf("%d entries and %d lines of the log, want 400 each", trace.Len(), len(trace.Logs()))
	}
}
