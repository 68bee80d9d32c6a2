// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"
)

// said is what a page has said of an object, so that it says each message once.
type said []string

// above stands for a message that was said before.
const above = "as above"

// once notes a text and returns it, with "as above" in place of a message at its end that was said
// before. A message is four words at least, or the whole of a text: names are said again.
func (s *said) once(text string) string {
	for rest, ok := text, true; ok; _, rest, ok = strings.Cut(rest, ": ") {
		message := strings.TrimSuffix(rest, ".")
		if strings.Count(message, " ") >= 3 && slices.ContainsFunc(*s, func(t string) bool { return strings.Contains(t, message) }) {
			return strings.TrimSuffix(text, rest) + above
		}
	}
	if slices.Contains(*s, text) {
		return above
	}
	*s = append(*s, text)
	return text
}
