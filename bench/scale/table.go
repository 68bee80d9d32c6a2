// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// results are the figures of a run, as a table.
type results struct {
	sizes  []int
	rows   []string // operator and row, in the order in which they came
	values map[string]map[int]float64
}

func newTable(sizes []int) *results {
	return &results{sizes: sizes, values: map[string]map[int]float64{}}
}

func (r *results) add(operator, row string, size int, value float64) {
	name := operator + " | " + row
	if !slices.Contains(r.rows, name) {
		r.rows = append(r.rows, name)
		r.values[name] = map[int]float64{}
	}
	r.values[name][size] = value
}

// write writes the table. The last column is how much more the last size costs for each object than
// the one before it.
func (r *results) write(to io.Writer) error {
	var text strings.Builder
	text.WriteString("| operator | |")
	for _, size := range r.sizes {
		fmt.Fprintf(&text, " %d |", size)
	}
	text.WriteString(" for each object |\n|---|---|" + strings.Repeat("--:|", len(r.sizes)+1) + "\n")
	for _, row := range r.rows {
		text.WriteString("| " + row + " |")
		for _, size := range r.sizes {
			if value, ok := r.values[row][size]; ok {
				fmt.Fprintf(&text, " %.2f |", value)
				continue
			}
			text.WriteString(" |")
		}
		text.WriteString(" " + r.growth(row) + " |\n")
	}
	_, err := io.WriteString(to, text.String())
	return err
}

func (r *results) growth(row string) string {
	if len(r.sizes) < 2 {
		return ""
	}
	small, large := r.sizes[len(r.sizes)-2], r.sizes[len(r.sizes)-1]
	before, ok := r.values[row][small]
	after, both := r.values[row][large]
	if !ok || !both || before == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", after/before*float64(small)/float64(large))
}
