// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ctrlkit/ctrlkit/journal"
)

// runs writes the last reconciles of a controller: their causes, results and writes.
func (p *page) runs(c *Controller) {
	if len(c.Runs) == 0 {
		return
	}
	p.line("")
	p.line("Last reconciles of controller %s, the latest first", c.Name)
	var rows [][]string
	for i := len(c.Runs) - 1; i >= 0; i-- {
		r, more := c.Runs[i], 0
		for i > 0 && r.like(&c.Runs[i-1]) {
			i, more = i-1, more+1
		}
		result := cmp.Or(results[r.Result], string(r.Result), StateRunning)
		if r.Duration >= time.Second {
			result += " after " + duration.HumanDuration(r.Duration)
		}
		because := ""
		if len(r.Causes) > 0 {
			because = "because: " + strings.Join(r.Causes, ", ")
		}
		if more > 0 {
			because = strings.TrimSpace(fmt.Sprintf("%s (and %d like it before, since %s ago)",
				because, more, p.age(c.Runs[i].Began)))
		}
		rows = append(rows, []string{p.age(r.Began) + " ago", result, because})
		for _, w := range r.Writes[:min(len(r.Writes), mostWrites)] {
			text := "wrote: " + w.What
			if w.Error != "" {
				text = "refused: " + w.What + ": " + w.Error
			}
			rows = append(rows, []string{"", "", text})
		}
		if n := len(r.Writes) - mostWrites; n > 0 {
			p.leftOut = true
			rows = append(rows, []string{"", "", fmt.Sprintf("… and %d more", n)})
		}
	}
	p.table(rows)
}

// results are the texts of those whose constant is not plain.
var results = map[journal.Result]string{
	journal.ResultConverged: "nothing to do", journal.ResultStale: "stale cache",
	journal.ResultGone: "object gone", journal.ResultDeleted: "cleaned up",
}

// like reports whether two reconciles differ only in their times.
func (r *Run) like(o *Run) bool {
	return r.Result == o.Result && slices.Equal(r.Causes, o.Causes) && slices.Equal(r.Writes, o.Writes)
}
