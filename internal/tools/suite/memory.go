// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A memory is what was explored before, by the key of the part.
type memory map[string]entry

// An entry is what became of a part when it was run last.
type entry struct {
	Code    string    `json:"code"` // a hash of the code that was tested
	Passed  bool      `json:"passed"`
	Seconds float64   `json:"seconds"`
	At      time.Time `json:"at"`
}

// readMemory reads the memory in a file, which need not exist.
func readMemory(file string) (memory, error) {
	m := memory{}
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, fmt.Errorf("%s is not what an exploration writes; remove it to begin anew: %w", file, err)
	}
	return m, nil
}

func (m memory) write(file string) error {
	content, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// unknown is how long a part is expected to take that was never run.
const unknown = 30 * time.Second

// expected returns how long a part may take.
func (m memory) expected(p part) time.Duration {
	if e, known := m[p.key()]; known {
		return time.Duration(e.Seconds * float64(time.Second))
	}
	return unknown
}

// A rank says how much a part is worth running: what failed last comes first, then what was never
// run for this code.
type rank int

const (
	rankFailed rank = iota
	rankNew
	rankDone
)

func (m memory) rank(p part, code string) rank {
	switch e, known := m[p.key()]; {
	case known && !e.Passed:
		return rankFailed
	case !known || e.Code != code:
		return rankNew
	}
	return rankDone
}

// order sorts parts by rank, what is done already from the oldest to the newest, and all others as
// the seed says: a part of each exploration before the second part of one, so that an exploration
// with a single part is not the last to run.
func (m memory) order(parts []part, seed string, code func(part) string) {
	type place struct {
		rank     rank
		at       time.Time
		round    int // how many parts of its exploration come before it
		shuffled uint64
	}
	places := map[string]place{}
	for _, p := range parts {
		where := place{rank: m.rank(p, code(p)), shuffled: shuffled(seed, p.key())}
		if where.rank == rankDone {
			where.at = m[p.key()].At
		}
		places[p.key()] = where
	}
	sort := func() {
		slices.SortFunc(parts, func(a, b part) int {
			x, y := places[a.key()], places[b.key()]
			return cmp.Or(cmp.Compare(x.rank, y.rank), x.at.Compare(y.at), cmp.Compare(x.round, y.round), cmp.Compare(x.shuffled, y.shuffled), cmp.Compare(a.key(), b.key()))
		})
	}
	sort()
	before := map[string]int{}
	for _, p := range parts {
		where, line := places[p.key()], fmt.Sprint(places[p.key()].rank, p.dir, p.run, p.flags)
		where.round, before[line] = before[line], before[line]+1
		places[p.key()] = where
	}
	sort()
}

// shuffled returns a number that depends on each bit of both texts.
func shuffled(seed, key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(seed + "\x00" + key))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
