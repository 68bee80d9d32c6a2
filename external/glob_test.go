// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGlob(t *testing.T) {
	for list, want := range map[string]map[string]bool{
		"a*,b":               {"a": true, "a/b": true, "b": true, "bb": false, "": false},
		"a?":                 {"a1": true, "a": false, "aé": true, "a12": false},
		" a , \n b c\n":      {"a": true, "b c": true, " a ": false, "": false},
		`a\*,\\,c\,d,e\ ,f\`: {"a*": true, "aa": false, `\\`: false, `\`: true, "c,d": true, "c": false, "e ": true, "e": false, `f\`: true},
		"[a]":                {"a": false, "[a]": true},
		"":                   {"": false, "a": false},
		",, ":                {"": false, "a": false},
		"*":                  {"": true, "a\nb": true},
		"\xff":               {"\xfe": true, "a": false},
	} {
		for id, want := range want {
			if got := globOf(list).MatchString(id); got != want {
				t.Errorf("%q matches %q: %t", list, id, got)
			}
		}
	}
}

// An id that is quoted is a pattern of itself, and if it is printable, of no other id.
func TestQuoteGlob(t *testing.T) {
	id := rapid.StringOf(rapid.SampledFrom([]rune("ab*?,\\ '\t\n\u2028é")))
	rapid.Check(t, func(t *rapid.T) {
		one, other := id.Draw(t, "one"), id.Draw(t, "other")
		pattern := quoteGlob(one)
		if one != "" && !globOf("x,"+pattern+" ,y").MatchString(one) {
			t.Errorf("%q does not match %q", pattern, one)
		}
		if globOf(pattern).MatchString(other) && other != one && !strings.ContainsAny(one, "\t\n\u2028") {
			t.Errorf("%q of %q matches %q", pattern, one, other)
		}
	})
}
