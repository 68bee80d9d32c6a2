// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// A Table is what was measured, and about what.
type Table struct {
	// About are facts about versions, the machine and the settings.
	About []Fact
	// Reference is the operator that others are compared with.
	Reference string
	Operators []Operator
	Rows      []Row

	samples map[cell]map[int]float64 // by round
}

// A Fact is something that figures depend on, such as the version of the API server.
type Fact struct{ Name, Value string }

// An Operator is a column.
type Operator struct {
	Name string
	// Setting is how the operator is run.
	Setting string
}

// A Row is a quantity.
type Row struct {
	// ID names the row in JSON and in Add.
	ID string
	// Title says what is measured.
	Title string
	// Unit is the unit of the samples, empty for counts.
	Unit string
	// Digits are printed after the point, of absolute values.
	Digits int
	// Relative rows are printed relative to the reference within each round.
	Relative bool
	// More is whether more is better.
	More bool
	// Beside is the ID of a row that is printed in the cells of this one where it is not zero, with
	// BesideUnit, instead of in a row of its own.
	Beside, BesideUnit string
	// Limit is the least, or the most, that is possible, with the reason.
	Limit string
}

type cell struct{ row, operator string }

// Add adds a sample. A cell has at most one sample for each round: a second one replaces the first.
func (t *Table) Add(row, operator string, round int, value float64) {
	if t.samples == nil {
		t.samples = make(map[cell]map[int]float64)
	}
	key := cell{row, operator}
	if t.samples[key] == nil {
		t.samples[key] = make(map[int]float64)
	}
	t.samples[key][round] = value
}

// Samples returns the samples of a cell in the order of the rounds.
func (t *Table) Samples(row, operator string) []float64 {
	var all []float64
	by := t.samples[cell{row, operator}]
	for _, round := range rounds(by) {
		all = append(all, by[round])
	}
	return all
}

// Relative returns the samples of a cell divided by those of the reference in the same round, in the
// order of the rounds. Rounds in which there is none of the reference, or in which it is zero, are
// left out.
func (t *Table) Relative(row, operator string) []float64 {
	var all []float64
	by, reference := t.samples[cell{row, operator}], t.samples[cell{row, t.Reference}]
	for _, round := range rounds(by) {
		if of := reference[round]; of != 0 {
			all = append(all, by[round]/of)
		}
	}
	return all
}

func rounds(by map[int]float64) []int {
	var all []int
	for round := range by {
		all = append(all, round)
	}
	slices.Sort(all)
	return all
}

// A Spread is the middle of samples and their ends.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf returns the spread of samples, and whether there are any. The median of an even number of
// samples is the mean of the middle two.
func SpreadOf(samples []float64) (spread Spread, ok bool) {
	if len(samples) == 0 {
		return Spread{}, false
	}
	sorted := slices.Sorted(slices.Values(samples))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}, true
}

// Median returns the median of samples, zero if there are none.
func Median(samples []float64) float64 {
	spread, _ := SpreadOf(samples)
	return spread.Median
}

// Quantile returns the sample that the part q of all does not exceed, by nearest rank: the slowest of
// less than a hundred is their quantile of 0.99. It is zero if there are none.
func Quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

type jsonTable struct {
	About     map[string]string `json:"about"`
	Reference string            `json:"reference"`
	Settings  map[string]string `json:"settings"`
	Rows      []jsonRow         `json:"rows"`
}

type jsonRow struct {
	ID        string              `json:"id"`
	Title     string              `json:"title"`
	Unit      string              `json:"unit,omitempty"`
	Better    string              `json:"better"`
	Limit     string              `json:"limit,omitempty"`
	Operators map[string]jsonCell `json:"operators"`
}

type jsonCell struct {
	Spread
	Relative *Spread   `json:"relative,omitempty"`
	Samples  []float64 `json:"samples"`
}

// WriteJSON writes the table with all samples.
func (t *Table) WriteJSON(w io.Writer) error {
	out := jsonTable{About: make(map[string]string), Reference: t.Reference, Settings: make(map[string]string)}
	for _, fact := range t.About {
		out.About[fact.Name] = fact.Value
	}
	for _, o := range t.Operators {
		out.Settings[o.Name] = o.Setting
	}
	for _, row := range t.Rows {
		r := jsonRow{ID: row.ID, Title: row.Title, Unit: row.Unit, Better: "less", Limit: row.Limit, Operators: make(map[string]jsonCell)}
		if row.More {
			r.Better = "more"
		}
		for _, o := range t.Operators {
			c := jsonCell{Samples: t.Samples(row.ID, o.Name)}
			var ok bool
			if c.Spread, ok = SpreadOf(c.Samples); !ok {
				continue
			}
			if relative, ok := SpreadOf(t.Relative(row.ID, o.Name)); ok && row.Relative {
				c.Relative = &relative
			}
			r.Operators[o.Name] = c
		}
		out.Rows = append(out.Rows, r)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("writing the table as JSON: %w", err)
	}
	return nil
}
