// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNear is the length, in runes, up to which names are compared. It bounds what a hint may cost.
const maxNear = 64

// Near returns the candidate that got most likely means, and reports whether there is one. A
// difference in case counts little. Of equally near candidates Near returns the first, so
// candidates must be in a fixed order.
func Near(got string, candidates []string) (string, bool) {
	n := utf8.RuneCountInString(got)
	if n == 0 || n > maxNear {
		return "", false
	}
	best, bestDistance := "", limit(n)+1
	for _, c := range candidates {
		if c == got || utf8.RuneCountInString(c) > maxNear {
			continue
		}
		d := distance([]rune(strings.ToLower(got)), []rune(strings.ToLower(c)))
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best, best != ""
}

// DidYouMean returns a hint with the nearest candidate, or "" if none is near.
func DidYouMean(got string, candidates []string) string {
	near, ok := Near(got, candidates)
	if !ok {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// limit returns the largest distance at which a name of n runes counts as misspelled, rather than
// as another name.
func limit(n int) int { return 1 + n/5 }

// distance returns the number of insertions, deletions, replacements and swaps of neighbors that
// turn a into b.
func distance(a, b []rune) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
