// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/condition"
)

func TestKeepSimilarMessages(t *testing.T) {
	before := stored("Degraded", isTrue, "Slow", "try 1 took 20ms")
	for _, tt := range []struct {
		name       string
		generation int64
		do         func(*condition.Set)
		want       string
	}{
		{"other numbers", 1, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "try 2 took 30ms") }, "try 1 took 20ms"},
		{"other words", 1, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "try 2 was lost") }, "try 2 was lost"},
		{"another reason", 1, func(s *condition.Set) {
			s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slower", "try 2 took 30ms")
		}, "try 2 took 30ms"},
		{"another status", 1, func(s *condition.Set) { s.MarkHealthy("Degraded", "Slow", "try 2 took 30ms") }, "try 2 took 30ms"},
		{"another spec, which is written anyway", 2, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "try 2 took 30ms") }, "try 2 took 30ms"},
		{"there and back", 1, func(s *condition.Set) {
			s.MarkUnknown("Degraded", "Asking", "asks")
			s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "try 2 took 30ms")
		}, "try 1 took 20ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDatabase(before)
			d.Generation = tt.generation
			set := newSet(t, d)
			tt.do(set)
			if got := get(t, set, "Degraded").Message; !strings.HasPrefix(got, "try 2") {
				t.Errorf("got %q before it is held: progress that counts must be written", got)
			}
			held := set.KeepSimilarMessages()
			if got := get(t, set, "Degraded").Message; got != tt.want || held != strings.HasPrefix(got, "try 1") {
				t.Errorf("got %q, held %t, want %q", got, held, tt.want)
			}
		})
	}
}

func TestKeepMessages(t *testing.T) {
	d := newDatabase(stored("SecretFound", isTrue, "Found", "old"), stored("Degraded", isTrue, "Slow", "old"), stored("BackupDone", isFalse, "Full", "old"))
	for _, tt := range []struct {
		name       string
		generation int64
		do         func(*condition.Set)
		isNew      bool
		want       string // of SecretFound, Degraded and BackupDone
	}{
		{"nothing is new", 1, func(*condition.Set) {}, false, "old old old"},
		{"a message", 1, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "new") }, true, "old old old"},
		{"a reason", 1, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slower", "new") }, false, "old new old"},
		{"a status", 1, func(s *condition.Set) { s.MarkUnknown("Degraded", "Slow", "new") }, false, "old new old"},
		{"a message and a reason", 1, func(s *condition.Set) {
			s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "new")
			s.MarkHealthy("BackupDone", "Done", "new")
		}, true, "old old new"},
		{"a message about another spec", 2, func(s *condition.Set) { s.MarkUnhealthy("Degraded", condition.SeverityInfo, "Slow", "new") }, true, "old new old"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := d.copy()
			d.Generation = tt.generation
			set := newSet(t, d)
			tt.do(set)
			same(t, "messages changed", tt.isNew, set.MessagesChanged())
			held := set.KeepMessages()
			if want := tt.isNew && tt.generation == 1; held != want {
				t.Errorf("messages were held: got %t, want %t", held, want)
			}
			var got []string
			for _, conditionType := range conditionTypes {
				got = append(got, get(t, set, conditionType).Message)
			}
			same(t, "", tt.want, strings.Join(got, " "))
		})
	}
}

// A message that is too long is cut, and invalid UTF-8 is replaced.
func TestLongMessages(t *testing.T) {
	for _, tt := range []struct{ name, message, want string }{
		{"as long as it may be", strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		{"longer", strings.Repeat("a", 1025), strings.Repeat("a", 1020) + " ..."},
		{"in the middle of a letter", strings.Repeat("ü", 513), strings.Repeat("ü", 510) + " ..."},
		{"in the middle of a letter, by a byte", "a" + strings.Repeat("ü", 513), "a" + strings.Repeat("ü", 509) + " ..."},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, newDatabase())
			set.MarkUnhealthy("SecretFound", condition.SeverityInfo, "A", tt.message)
			set.MarkUnhealthy("Degraded", condition.SeverityInfo, "B", "another")
			same(t, "", tt.want, get(t, set, "SecretFound").Message)
			set.Summarize()
			got := get(t, set, condition.Ready).Message
			if len(got) > 1024 || !utf8.ValidString(got) || !strings.HasPrefix(got, "SecretFound: ") || !strings.HasSuffix(got, " (and 1 more)") {
				t.Errorf("Ready says %q, want 1,024 bytes of text that end with how many more there are", got)
			}
		})
	}
}
