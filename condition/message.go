// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeepMessages gives back to each condition the message that it has on the object if status, reason
// and generation are still the same, and reports whether there was one. Call it after
// [Set.Summarize] if the messages come from an error whose text differs from try to try: a message
// that changes causes a write, the write an event, and the event the next try.
func (s *Set) KeepMessages() bool {
	return s.keepMessages(func(string, string) bool { return true })
}

// KeepSimilarMessages is [Set.KeepMessages] for messages that differ only in numbers, times,
// addresses in memory and ids. IPv4 addresses, and names that end in a hyphen and a number
// ("db-1"), count as words: they say what a message is about. Call it only if the messages come
// from an error: progress ("2 of 3 replicas are ready") must be written.
func (s *Set) KeepSimilarMessages() bool { return s.keepMessages(similar) }

func (s *Set) keepMessages(keep func(before, now string) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := false
	for i := range s.list.items {
		c := &s.list.items[i]
		b := s.list.unchanged(c)
		if b == nil || b.ObservedGeneration != c.ObservedGeneration || b.Message == c.Message || !keep(b.Message, c.Message) {
			continue
		}
		c.Message, kept = b.Message, true
	}
	return kept
}

// MessagesChanged reports whether there is a condition of which only the message differs from that
// on the object.
func (s *Set) MessagesChanged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.list.items, func(c metav1.Condition) bool {
		b := s.list.unchanged(&c)
		return b != nil && b.Message != c.Message
	})
}

// similar reports whether two messages differ only in what differs between two tries of the same
// thing.
func similar(a, b string) bool { return a == b || steady(a) == steady(b) }

// volatile matches what differs in a text from one try to the next, and names that look like it. Of
// alternatives that match at the same place, the first counts.
var volatile = regexp.MustCompile(strings.Join([]string{
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,      // a UUID
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:?\d\d)?`,                     // a time
	`(?P<name>\d{1,3}(\.\d{1,3}){3}\b|[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*-\d{1,4}\b)`, // an IP address, or the name of one of several: "db-1"
	`0x[0-9a-fA-F]+`,                      // an address in memory
	`(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+\b`, // a duration
	`[0-9a-fA-F]{8,}(\.\d+)?`,             // an id in hexadecimal, if it has a digit, or a long number
	`\d+(\.\d+)?`,                         // any number: ports, counters, request ids
}, "|"))

// nameGroup is the alternative of volatile that is a name.
var nameGroup = volatile.SubexpIndex("name")

// steady returns a text with "#" for each volatile part. Words of letters that happen to be
// hexadecimal digits stay.
func steady(text string) string {
	var b strings.Builder
	rest := 0
	for _, at := range volatile.FindAllStringSubmatchIndex(text, -1) {
		from, to := at[0], at[1]
		b.WriteString(text[rest:from])
		rest = to
		if at[2*nameGroup] >= 0 || !strings.ContainsAny(text[from:to], "0123456789-") {
			b.WriteString(text[from:to])
			continue
		}
		b.WriteByte('#')
	}
	b.WriteString(text[rest:])
	return b.String()
}
