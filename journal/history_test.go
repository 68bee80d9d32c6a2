// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// However entries are added and removed, the counted size is that of what is kept.
func TestRingCountsWhatItKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRing(RingOptions{Entries: 6, Objects: 3, Bytes: leastBytes})
		texts := rapid.SampledFrom([]string{"", "a", "b", "c"})
		event := func() Event {
			object := Object{Name: texts.Draw(t, "name")}
			outcome := Outcome{Waits: []Wait{{For: texts.Draw(t, "wait")}}, Err: errors.New(texts.Draw(t, "error"))}
			result := rapid.SampledFrom([]Result{ResultDone, ResultFailed, ResultConverged}).Draw(t, "result")
			events := []Event{
				Triggered{Cause{Object: object}}, Started{Causes: []Cause{{Object: object}}}, Started{}, Finished{Result: result, Outcome: outcome},
				Finished{Result: ResultConverged}, Wrote{Object: object, Fields: []string{texts.Draw(t, "field")}}, Gated{Message: fmt.Sprintf("%09000d", 1)},
				StepEnded{Outcome: Outcome{Err: errors.Join(errors.New("a"), errors.New("x"))}}, ActionBlocked{By: []string{"a", "a"}}, HotLoop{Managers: []string{"b"}}, Unwatched{Step: "a", Object: Object{Namespace: "b", Name: "x"}},
			}
			return events[rapid.IntRange(0, len(events)-1).Draw(t, "event")]
		}
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			r.Observe(t.Context(), Entry{Object: Object{Name: texts.Draw(t, "object")}, Event: event()})
			sum := 0
			for _, h := range r.objects {
				sum += h.size()
				again := newHistory(h.key)
				for _, entry := range h.entries {
					again.take(entry)
				}
				if again.content != h.content || again.texts.bytes != h.texts.bytes || len(again.texts.all) != len(h.texts.all) {
					t.Fatalf("of %v it counts %d bytes and %d texts, there are %d and %d", h.key.object, h.content, len(h.texts.all), again.content, len(again.texts.all))
				}
			}
			if sum != r.bytes || sum > leastBytes {
				t.Fatalf("it counts %d bytes, there are %d, and may be %d", r.bytes, sum, leastBytes)
			}
		}
	})
}

func BenchmarkRing(b *testing.B) {
	r := NewRing(RingOptions{})
	for b.Loop() {
		object := Object{Kind: "Database", Namespace: "shop", Name: "db"}
		for _, e := range []Event{
			Triggered{Cause{Kind: CauseOwnChange, Verb: "updated", Object: object}}, Started{Causes: []Cause{{Kind: CauseOwnChange, Object: object}}},
			StepBegan{Step: "A", Phase: PhaseDo}, StepEnded{Step: "A", Phase: PhaseDo}, StepBegan{Step: "B", Phase: PhaseDo}, StepEnded{Step: "B", Phase: PhaseDo},
			Wrote{Verb: "patch", Object: object, Fields: []string{".status"}}, Finished{Result: ResultDone},
		} {
			r.Observe(b.Context(), Entry{Object: object, Event: e})
		}
	}
}
