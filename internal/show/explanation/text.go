// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// The bounds of what is shown. What exceeds them is counted.
const (
	mostText       = 1000 // characters of a message
	mostLine       = 4000 // characters of a line, with all that it is made of
	mostConditions = 20
	mostFinalizers = 10
	mostSteps      = 30 // of a controller, and actions of a step
	mostWrites     = 10 // of a reconcile
	mostUnwatched  = 5  // kinds of a controller
	mostAdvice     = 4  // about the object, and from each controller
)

// oneLine joins the lines of a text and escapes what acts on a terminal.
func oneLine(text string) string { return printable.Line(text) }

// short returns a text on one line. If it is too long, it is cut, and says so.
func short(text string) string { return printable.Cut(printable.Line(text), mostText) }

// choose returns the indexes of the most items that matter most, in their order: rank is 0 for
// those that do.
func choose[T any](items []T, most int, rank func(T) int) []int {
	all := make([]int, len(items))
	for i := range all {
		all[i] = i
	}
	if len(all) <= most {
		return all
	}
	slices.SortStableFunc(all, func(a, b int) int { return rank(items[a]) - rank(items[b]) })
	all = all[:most]
	slices.Sort(all)
	return all
}

// others counts the items that were not chosen by their category: "all done", or "12 done, 3
// failed".
func others[T any](items []T, chosen []int, category func(T) string) string {
	counts := make(map[string]int)
	var categories []string
	for i, item := range items {
		if _, ok := slices.BinarySearch(chosen, i); ok {
			continue
		}
		s := category(item)
		if counts[s] == 0 {
			categories = append(categories, s)
		}
		counts[s]++
	}
	if len(categories) == 1 {
		return fmt.Sprintf("… and %d more, all %s", counts[categories[0]], categories[0])
	}
	texts := make([]string, len(categories))
	for i, s := range categories {
		texts[i] = fmt.Sprintf("%d %s", counts[s], s)
	}
	return fmt.Sprintf("… and %d more: %s", len(items)-len(chosen), strings.Join(texts, ", "))
}

// shellWord quotes a text as a word of a command that is pasted into a shell.
func shellWord(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(plainInShell, r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/@"
