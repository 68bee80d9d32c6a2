// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// aboutChange matches the refusals of a change, whatever the new value is.
var aboutChange = regexp.MustCompile(`immutable|may not change|may not be changed|cannot change|updates to|may not be updated|not be modified|forbidden after creation`)

// generalize removes the indexes of a path.
func generalize(path string) string {
	var b strings.Builder
	inside := false
	for _, c := range path {
		switch {
		case c == '[':
			inside = true
			b.WriteString("[]")
		case c == ']':
			inside = false
		case !inside:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// constants learns which changes are refused. A refusal at a field holds for all changes below it but
// those that were accepted.
func constants(records []record) []rule {
	type key struct{ kind, path string }
	type words struct {
		key
		refusedAs
	}
	accepted := map[key]bool{}
	refused := map[words]bool{}
	for _, r := range records {
		for _, a := range r.answers {
			if a.undecodable || len(a.create) > 0 || a.unchanged {
				continue
			}
			only := a.onlyUpdate()
			if len(only) == 0 {
				accepted[key{r.sample.id(), r.general()}] = true
			}
			if len(only) == 0 && inTemplate(r.sample.id(), r.general()) {
				accepted[key{r.sample.id(), strings.TrimSuffix(templates[r.sample.id()], ".spec")}] = true
			}
			for _, e := range only {
				if !aboutChange.MatchString(e.Detail) {
					continue
				}
				at := generalize(e.Path)
				if r.general() == at || strings.HasPrefix(r.general(), at+".") || strings.HasPrefix(r.general(), at+"[") {
					w := words{key{r.sample.id(), at}, refusedAs{e.Type, e.Detail}}
					refused[w] = true
				}
			}
		}
	}
	var out []rule
	for w := range refused {
		c := &constant{refusedAs: w.refusedAs}
		for k := range accepted {
			if rest, ok := strings.CutPrefix(k.path, w.path); ok && k.kind == w.kind && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				c.Except = append(c.Except, strings.TrimPrefix(rest, "."))
			}
		}
		slices.Sort(c.Except)
		if slices.Contains(c.Except, "") {
			continue // some changes of the field are accepted
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(refused)), func(o words) bool {
			return o.kind == w.kind && o.refusedAs == w.refusedAs && strings.HasPrefix(w.path, o.path+".")
		}) {
			continue // a change of what contains it is refused
		}
		out = append(out, rule{Kind: w.kind, Path: w.path, Constant: c})
	}
	slices.SortFunc(out, compareRules)
	return out
}

func same(a, b any) bool {
	x, _ := json.Marshal(a) //nolint:errcheck // they come from JSON
	y, _ := json.Marshal(b) //nolint:errcheck // they come from JSON
	return string(x) == string(y)
}

func compareRules(a, b rule) int {
	if c := strings.Compare(a.Kind, b.Kind); c != 0 {
		return c
	}
	if c := strings.Compare(a.Path, b.Path); c != 0 {
		return c
	}
	x, y := "", ""
	if a.Constant != nil {
		x = a.Constant.Detail
	}
	if b.Constant != nil {
		y = b.Constant.Detail
	}
	return strings.Compare(x, y)
}

// merge adds the rules about changes to those about values.
func merge(rules, more []rule) []rule {
	rules = append(rules, more...)
	slices.SortStableFunc(rules, compareRules)
	return rules
}

// line is a probe with the answers of the real server, as it is written.
type line struct {
	Sample  int       `json:"sample"`
	Stored  object    `json:"stored,omitempty"` // the sample as it is stored: the first line of a sample has only this
	Path    []any     `json:"path,omitempty"`
	Value   any       `json:"value,omitempty"`   // none removes the field
	Becomes any       `json:"becomes,omitempty"` // what a removed field is stored with
	Create  []refusal `json:"create,omitempty"`
	Update  []refusal `json:"update,omitempty"`
}

// writeProbes writes the answers to all probes.
func writeProbes(path string, records []record) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // closed below, where it matters
	out, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var last *sample
	for _, r := range records {
		if r.sample != last {
			last = r.sample
			if err := encoder.Encode(line{Sample: last.index, Stored: last.stored}); err != nil {
				return err
			}
		}
		for _, a := range r.answers {
			if a.undecodable {
				continue
			}
			if err := encoder.Encode(line{r.sample.index, nil, a.path, a.value, a.becomes, a.create, a.update}); err != nil {
				return err
			}
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return file.Close()
}
