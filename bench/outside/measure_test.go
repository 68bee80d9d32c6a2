// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	since := time.Unix(100, 0)
	at := func(ms int) time.Time { return since.Add(time.Duration(ms) * time.Millisecond) }
	got := histogram([]time.Time{at(-1), at(0), at(99), at(100), at(250), at(300)}, since, 100*time.Millisecond, 3)
	if !slices.Equal(got, []int{2, 1, 1}) {
		t.Errorf("got %v", got)
	}
}

// Of 10 workers and calls of 50 ms, an object with 4 calls is possible 50 times a second.
func TestBound(t *testing.T) {
	m := &measurement{sizes: sizes{workers: 10, latency: 50 * time.Millisecond}}
	if got := m.bound(4); got < 49.999 || got > 50.001 {
		t.Errorf("got %f", got)
	}
}

func TestWrite(t *testing.T) {
	m := &measurement{
		sizes: sizes{objects: 100, workers: 10, latency: 50 * time.Millisecond, poll: 10 * time.Second, periods: 1},
		took:  2 * time.Second, calls: 4, writes: 2, polls: []int{20, 10, 10, 10, 10, 10, 10, 10, 10, 0},
	}
	var text strings.Builder
	if err := m.write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| objects per second | 50.0 |", "/ bound | 1.00 |", "object and interval | 1.00 |", "whole time | 2.00 |", "workers can do | 0.10 |"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &text)
		}
	}
}

func TestParse(t *testing.T) {
	if s, err := parse([]string{"-objects", "5"}, io.Discard); err != nil || s.objects != 5 || s.workers != 10 || s.latency != 50*time.Millisecond {
		t.Errorf("%+v, error %v", s, err)
	}
	for _, args := range [][]string{{"-objects", "0"}, {"-poll", "1ms"}, {"more"}, {"-unknown"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%v are accepted", args)
		}
	}
}
