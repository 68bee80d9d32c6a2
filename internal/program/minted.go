// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/judge/minted"
)

// mostSteps is how often names are learned from two runs: what has the name of another object in it
// is alike in both only when that is called the same.
const mostSteps = 4

// learnNames returns the names that differ between two runs without faults.
func learnNames(a, b []state) (names minted.Names) {
	for range mostSteps {
		var more minted.Names
		for i := range a {
			more = append(more, minted.Learn(a[i].renamed(names).texts(), b[i].renamed(names).texts())...)
		}
		if len(more) == 0 {
			break
		}
		names = append(names, more...)
	}
	return names
}

// texts returns what the objects have, as texts.
func (s state) texts() map[string]string {
	texts := make(map[string]string, len(s))
	for thing, content := range s {
		data, err := json.Marshal(content)
		if err != nil {
			panic(err) // it came from JSON
		}
		texts[thing] = string(data)
	}
	return texts
}

// renamed returns a state without the parts of names that differ between runs. Objects that are called
// the same then are numbered.
func (s state) renamed(names minted.Names) state {
	replacer := names.Replacer(slices.Collect(maps.Keys(s)))
	if replacer == nil {
		return s
	}
	texts, all := s.texts(), state{}
	order := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		return cmp.Or(cmp.Compare(replacer.Replace(texts[a]), replacer.Replace(texts[b])), cmp.Compare(a, b))
	})
	for _, thing := range order {
		called := replacer.Replace(thing)
		for n := 2; all[called] != nil; n++ {
			called = fmt.Sprint(replacer.Replace(thing), n)
		}
		all[called], _ = renamed(s[thing], replacer).(map[string]any)
	}
	return all
}
