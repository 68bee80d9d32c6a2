// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"regexp"
	"strings"
	"unicode"
)

// globOf returns the expression of a list of patterns, separated by commas or lines. In a pattern *
// stands for any text, ? for a character, and a backslash takes its meaning from the character after it. An id may
// have any others. White space around a pattern, and an empty one, count for nothing.
func globOf(list string) *regexp.Regexp {
	var all []string
	var one strings.Builder // the expression of this pattern, up to its last character that is no space
	spaces, quoted := "", false
	end := func() {
		if one.Len() > 0 {
			all = append(all, one.String())
		}
		one.Reset()
		spaces = ""
	}
	put := func(expression string) {
		one.WriteString(spaces + expression)
		spaces = ""
	}
	for _, r := range strings.ToValidUTF8(list, string(unicode.ReplacementChar)) {
		switch {
		case quoted:
			put(regexp.QuoteMeta(string(r)))
			quoted = false
		case r == '\\':
			quoted = true
		case r == ',' || r == '\n':
			end()
		case r == '*':
			put(".*")
		case r == '?':
			put(".")
		case unicode.IsSpace(r):
			if one.Len() > 0 {
				spaces += string(r)
			}
		default:
			put(regexp.QuoteMeta(string(r)))
		}
	}
	if quoted {
		put(regexp.QuoteMeta(`\`))
	}
	if end(); len(all) == 0 {
		return regexp.MustCompile(`$.^`) // matches nothing
	}
	return regexp.MustCompile("^(?s:" + strings.Join(all, "|") + ")$")
}

// quoteGlob returns a pattern that an id matches, and no other id does, unless it has control characters or
// is not text: each of these is replaced by a ?, because the pattern is shown in terminals and files.
func quoteGlob(id string) string {
	var b strings.Builder
	for _, r := range id {
		switch {
		case unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf):
			b.WriteByte('?')
		case strings.ContainsRune(`\*?,`, r) || unicode.IsSpace(r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
