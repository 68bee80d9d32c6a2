// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
	"time"
)

// Progress is how far an exploration is.
type Progress struct {
	Done, Total, Bad int // plans
	Took             time.Duration
	Left             time.Duration // that the others will take, by the pace so far and the budget; zero: it is not known
}

// String says how many plans are done, how fast, and how long it will take.
func (p Progress) String() string {
	text := fmt.Sprintf("%d of %d plans, %d with findings", p.Done, p.Total, p.Bad)
	if p.Done > 0 && p.Took > 0 {
		text += fmt.Sprintf(", %.3g a minute", float64(p.Done)/p.Took.Minutes())
	}
	if p.Left > 0 {
		unit := time.Second
		if p.Left > time.Minute {
			unit = time.Minute
		}
		left := p.Left.Round(unit).String()
		if unit == time.Minute {
			left = strings.TrimSuffix(left, "0s")
		}
		text += ", about " + left + " left"
	}
	return text
}

// report says how far the batch is.
func (b *batch) report() {
	p := Progress{Done: b.done, Total: len(b.plans), Bad: b.bad, Took: time.Since(b.begun)}
	if b.done > 0 && b.more == nil {
		p.Left = time.Duration(float64(p.Took) / float64(b.done) * float64(p.Total-b.done))
	}
	if left, ok := b.stop.Left(); ok && (p.Left > left || b.more != nil || b.done == 0) {
		p.Left = left
	}
	b.progress(p)
}
