// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Widths in runes and heights in lines at which labels are broken.
const (
	labelWidth, labelLines   = 48, 4
	detailWidth, detailLines = 44, 4
	decisionWidth            = 18
)

// LabelLines breaks the label of an edge or a cluster.
func LabelLines(label string) []string { return Lines(label, labelWidth, labelLines) }

// Lines breaks text into lines of at most width runes, at spaces where there are any, and at most
// limit lines; what is cut off is marked by an ellipsis. Line breaks in the text stay. Characters
// that no format can carry are replaced.
func Lines(text string, width, limit int) []string {
	var lines []string
	for _, paragraph := range strings.Split(Clean(text), "\n") {
		lines = append(lines, wrap(paragraph, width)...)
	}
	if len(lines) <= limit {
		return lines
	}
	lines = lines[:limit]
	lines[limit-1] += " …"
	return lines
}

// Clean makes text fit for every format: line ends become "\n", invalid UTF-8 and control
// characters the replacement character, and a final line end goes away.
func Clean(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", " ").Replace(text)
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError, r == '\u2028', r == '\u2029', isNonCharacter(r):
			return utf8.RuneError
		default:
			return r
		}
	}, text)
	return strings.TrimRight(text, "\n")
}

// isNonCharacter reports code points that XML does not allow.
func isNonCharacter(r rune) bool { return r&0xfffe == 0xfffe }

// longestName is how long a word may be that is never broken inside: it may be a name, and half of a
// name can't be searched for. What is longer is broken after a separator, if it has one.
const longestName = 72

// wrap breaks one line at spaces. A word that is longer than width has a line of its own.
func wrap(line string, width int) []string {
	var lines []string
	var current []rune
	for _, word := range strings.Fields(line) {
		runes := []rune(word)
		if len(current) > 0 && len(current)+1+len(runes) > width {
			lines, current = append(lines, string(current)), nil
		}
		if len(current) > 0 {
			current = append(current, ' ')
		}
		for len(runes) > longestName {
			end := longestName
			if i := strings.LastIndexAny(string(runes[:longestName]), "./-=,:_"); i > 0 {
				end = utf8.RuneCountInString(string(runes[:longestName])[:i+1])
			}
			lines, runes = append(lines, string(runes[:end])), runes[end:]
		}
		current = append(current, runes...)
	}
	return append(lines, string(current))
}
