// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"
	"time"
)

// The share of a processor is that of the last time, of the process that runs now.
func TestShareOfAProcessor(t *testing.T) {
	t.Parallel()
	var l load
	if got, left := l.share(time.Second); got != 0 || left != 1 {
		t.Errorf("without a sample: got %v of %v", got, left)
	}
	for i := range 21 { // busy for a second, and then idle for one
		at := time.Duration(i) * 100 * time.Millisecond
		l.add(sample{at: at, ran: min(at, time.Second)})
	}
	for last, want := range map[time.Duration]float64{2 * time.Second: 0.5, time.Second: 0, 5 * time.Second: 0} {
		if got, left := l.share(last); got != want || left != 1 {
			t.Errorf("in the last %s: got %v of %v, want %v of 1", last, got, left, want)
		}
	}
	l.add(sample{at: 2100 * time.Millisecond, ran: 10 * time.Millisecond}) // another process
	if got, _ := l.share(time.Second); got != 0 {
		t.Errorf("of a process that has just begun: got %v", got)
	}
	for i := range 11 { // of the half that others leave, it uses all
		at := 3*time.Second + time.Duration(i)*100*time.Millisecond
		l.add(sample{at, at / 2, at / 2})
	}
	if got, left := l.share(time.Second); got != 0.5 || left != 0.5 {
		t.Errorf("beside others: got %v of %v, want 0.5 of 0.5", got, left)
	}
}

// An operator that needs little of a processor has more runs at the same time.
func TestParallelRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cost       cost
		processors int
		want       int
	}{
		{cost{5 * time.Second, 0}, 2, 12}, // not known
		{cost{5 * time.Second, 2 * time.Second}, 2, 12},
		{cost{5 * time.Second, 250 * time.Millisecond}, 2, 20},
		{cost{5 * time.Second, 50 * time.Millisecond}, 2, 24},
		{cost{5 * time.Second, 50 * time.Millisecond}, 64, 32},
		{cost{5 * time.Second, time.Hour}, 64, 16},
	} {
		if got := test.cost.parallel(test.processors); got != test.want {
			t.Errorf("%+v on %d processors: got %d runs, want %d", test.cost, test.processors, got, test.want)
		}
	}
}
