// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refusedAs is the error with which a rule refuses.
type refusedAs struct {
	Type   field.ErrorType `json:"type"`
	Detail string          `json:"detail,omitempty"`
}

// bound is an end of a range.
type bound struct {
	Value int64 `json:"value"`
	refusedAs
}

// rule is what a field requires. rules.json has one per line.
type rule struct {
	Kind     string               `json:"kind"`
	Path     string               `json:"path"`
	Absent   []refusedAs          `json:"absent,omitempty"`  // if the field is not set
	Empty    []refusedAs          `json:"empty,omitempty"`   // if it is "", 0, [] or {}
	Up       bool                 `json:"up,omitempty"`      // whether the error is at the object or list that has the field
	Enum     []string             `json:"enum,omitempty"`    // the supported values
	EnumAs   *refusedAs           `json:"enumAs,omitempty"`  // the error for others, where it is not "supported values: ..."
	Format   string               `json:"format,omitempty"`  // the name of the format of a string
	Prefix   string               `json:"prefix,omitempty"`  // what a string begins with; else it is refused with EnumAs
	Keys     string               `json:"keys,omitempty"`    // the format of the keys of a map
	Values   string               `json:"values,omitempty"`  // the format of its values
	Min      *bound               `json:"min,omitempty"`     // of numbers and quantities
	Max      *bound               `json:"max,omitempty"`     // of numbers
	Unique   *string              `json:"unique,omitempty"`  // the field that differs between the elements of a list
	Refused  map[string]refusedAs `json:"refused,omitempty"` // values that are refused one by one
	Constant *constant            `json:"constant,omitempty"`
}

// constant is the refusal of a change.
type constant struct {
	refusedAs
	Except []string `json:"except,omitempty"` // the paths that may change, relative to the rule's
}

func (r *rule) empty() bool {
	return r.Prefix == "" && len(r.Absent) == 0 && len(r.Empty) == 0 && r.Enum == nil && r.Format == "" && r.Keys == "" && r.Values == "" && r.Min == nil && r.Max == nil &&
		r.Unique == nil && r.Refused == nil && r.Constant == nil
}

// field groups the records of one field of a kind.
type fieldRecords struct {
	kind, path string
	records    []record
}

// group groups records by kind and general path, sorted.
func group(records []record) []fieldRecords {
	by := map[[2]string]*fieldRecords{}
	for _, r := range records {
		key := [2]string{r.sample.id(), r.general()}
		if inTemplate(key[0], key[1]) {
			continue
		}
		if by[key] == nil {
			by[key] = &fieldRecords{kind: key[0], path: key[1]}
		}
		by[key].records = append(by[key].records, r)
	}
	var out []fieldRecords
	for _, f := range by {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b fieldRecords) int { return strings.Compare(a.kind+"\x00"+a.path, b.kind+"\x00"+b.path) })
	return out
}

// verdict is what all records say about a probe: the refusals at the field that they have in common.
type verdict struct{ refused []refusedAs }

// verdicts returns, for each probe, the refusals at the field itself or, with up, at the list that it
// is an element of.
func (f fieldRecords) verdicts(up bool) map[string]verdict {
	out := map[string]verdict{}
	for _, r := range f.records {
		for _, a := range r.answers {
			if a.undecodable {
				continue
			}
			var here []refusedAs
			at := r.String()
			if up {
				at = at[:strings.LastIndexAny(at, ".[")]
			}
			for _, e := range a.create {
				if e.Path == at {
					here = append(here, refusedAs{e.Type, e.Detail})
				}
			}
			if known, seen := out[a.key()]; seen {
				here = slices.DeleteFunc(here, func(e refusedAs) bool { return !slices.Contains(known.refused, e) })
			}
			out[a.key()] = verdict{here}
		}
	}
	return out
}

// silent reports whether nothing is refused.
func silent(verdicts map[string]verdict) bool {
	for _, v := range verdicts {
		if len(v.refused) > 0 {
			return false
		}
	}
	return true
}

func (v verdict) single(types ...field.ErrorType) *refusedAs {
	if len(v.refused) != 1 || len(types) > 0 && !slices.Contains(types, v.refused[0].Type) {
		return nil
	}
	return &v.refused[0]
}

// learn generalizes the answers about one field.
func (f fieldRecords) learn() rule {
	r := rule{Kind: f.kind, Path: f.path}
	verdicts := f.verdicts(false)
	if strings.ContainsAny(f.path, ".[") && silent(verdicts) {
		verdicts = f.verdicts(true)
		r.Up = true
		if !strings.HasSuffix(f.path, "[]") { // what an object refuses may be about another field of it
			for key, v := range verdicts {
				verdicts[key] = verdict{slices.DeleteFunc(v.refused, func(e refusedAs) bool { return e.Type != field.ErrorTypeNotSupported })}
			}
		}
		r.Up = !silent(verdicts)
	}
	optional := slices.ContainsFunc(f.records, func(r record) bool { return r.value == nil })
	if !optional {
		r.Absent = verdicts["-"].refused
	}
	class := f.records[0].class
	switch class {
	case "string":
		f.learnText(&r, verdicts)
	case "int", "int32", "int64", "quantity", "intorstring":
		f.learnNumber(&r, verdicts)
	case "list":
		r.Empty = verdicts["[]"].refused
		f.learnUnique(&r)
	case "map":
		r.Empty = verdicts["{}"].refused
		f.learnMap(&r)
	case "object":
		if slices.Equal(r.Absent, verdicts["{}"].refused) {
			r.Empty = r.Absent
		}
	case "bool":
		for _, v := range []string{"true", "false"} {
			if e := verdicts[v].single(); e != nil {
				r.refuse(v, *e)
			}
		}
	}
	return r
}

func (r *rule) refuse(value string, e refusedAs) {
	if r.Refused == nil {
		r.Refused = map[string]refusedAs{}
	}
	r.Refused[value] = e
}

func (f fieldRecords) learnText(r *rule, verdicts map[string]verdict) {
	r.Empty = verdicts[`""`].refused
	messages := map[string][]string{}
	for _, text := range texts[1:] {
		v, ok := verdicts[strconv.Quote(text)]
		if !ok {
			return
		}
		messages[text] = nil
		for _, e := range v.refused {
			switch e.Type {
			case field.ErrorTypeNotSupported:
				if list, ok := strings.CutPrefix(e.Detail, "supported values: "); ok {
					r.Enum = nil
					for _, value := range strings.Split(list, ", ") {
						value, err := strconv.Unquote(value)
						if err != nil {
							return
						}
						r.Enum = append(r.Enum, value)
					}
				}
			case field.ErrorTypeInvalid:
				messages[text] = append(messages[text], e.Detail)
			case field.ErrorTypeTooLong:
				messages[text] = append(messages[text], string(e.Type)+": "+e.Detail)
			}
		}
	}
	if r.Enum == nil {
		r.Format = formatOf(messages)
	}
	if r.Enum == nil && r.Format == "" {
		f.learnWords(r, messages)
	}
	for _, record := range f.records { // the samples are valid, so a rule that refuses one is wrong
		text, _ := record.value.(string)
		if text != "" && (r.Enum != nil && !slices.Contains(r.Enum, text) || r.Format != "" && len(formats[r.Format](text)) > 0) {
			r.Enum, r.Format = nil, ""
		}
	}
}

var word = regexp.MustCompile(`[A-Z][A-Za-z]+`)

// learnWords learns an enumeration that the error names in a sentence, or a prefix. All texts are
// refused with the same words then, but for those with the prefix.
func (f fieldRecords) learnWords(r *rule, messages map[string][]string) {
	detail, refused := "", 0
	absolute := true
	for _, text := range texts[1:] {
		list := messages[text]
		if len(list) == 0 {
			absolute = absolute && strings.HasPrefix(text, "/")
			continue
		}
		if len(list) > 1 || detail != "" && list[0] != detail {
			return
		}
		detail = list[0]
		refused++
		absolute = absolute && !strings.HasPrefix(text, "/")
	}
	if detail == "" {
		return
	}
	if absolute {
		r.Prefix, r.EnumAs = "/", &refusedAs{field.ErrorTypeInvalid, detail}
		return
	}
	candidates := word.FindAllString(detail, -1)
	if strings.HasSuffix(f.path, ".operator") {
		candidates = []string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}
	}
	if refused < len(texts)-1 {
		return
	}
	for _, candidate := range candidates {
		if !f.refuses(candidate, refusal{Type: field.ErrorTypeInvalid, Detail: detail}) {
			r.Enum = append(r.Enum, candidate)
		}
	}
	if r.Enum != nil {
		r.EnumAs = &refusedAs{field.ErrorTypeInvalid, detail}
	}
}

// refuses reports whether a sample with a value of the field is refused so, at the field.
func (f fieldRecords) refuses(value any, e refusal) bool {
	for _, r := range f.records {
		e.Path = r.String()
		a, err := r.sample.ask(probe{r.path, value})
		if err != nil || a.undecodable || slices.Contains(a.create, e) {
			return true
		}
	}
	return false
}

// probesOf returns the numbers of the probes, sorted.
func probesOf(verdicts map[string]verdict) []int64 {
	var out []int64
	for key := range verdicts {
		if n, err := strconv.ParseInt(strings.Trim(key, `"`), 10, 64); err == nil && key != `"1"` {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (f fieldRecords) learnNumber(r *rule, verdicts map[string]verdict) {
	at := func(n int64) *refusedAs {
		for _, key := range []string{strconv.FormatInt(n, 10), strconv.Quote(strconv.FormatInt(n, 10))} {
			if v, ok := verdicts[key]; ok {
				return v.single()
			}
		}
		return nil
	}
	numbers := probesOf(verdicts)
	accepted := slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool {
		v, ok := verdicts[strconv.FormatInt(n, 10)]
		if !ok {
			v = verdicts[strconv.Quote(strconv.FormatInt(n, 10))]
		}
		return len(v.refused) > 0
	})
	zero := verdicts["0"].refused
	if slices.ContainsFunc(zero, func(e refusedAs) bool { return e.Type == field.ErrorTypeRequired }) {
		r.Empty = zero
	}
	if len(accepted) == 0 {
		return
	}
	low, high := accepted[0], accepted[len(accepted)-1]
	if e := at(-1); e != nil && low <= 1 {
		r.Min = &bound{low, *e}
		if len(zero) > 0 && !slices.Equal(zero, []refusedAs{*e}) {
			r.Empty = zero
		}
	}
	for _, n := range numbers {
		if e := at(n); n > high && e != nil {
			if limit := f.highest(high, n, *e); strings.Contains(e.Detail, strconv.FormatInt(limit, 10)) || limit == 65535 || limit == 0o777 {
				r.Max = &bound{limit, *e}
			}
			break
		}
	}
	if f.records[0].class == "intorstring" {
		f.learnTextOrNumber(r, verdicts)
	}
}

// highest returns the highest accepted number between an accepted and a refused one.
func (f fieldRecords) highest(low, high int64, e refusedAs) int64 {
	for low+1 < high {
		middle := low + (high-low)/2
		if f.refuses(middle, refusal{Type: e.Type, Detail: e.Detail}) {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// learnTextOrNumber keeps what is said about the texts that are neither a number nor a percentage.
func (f fieldRecords) learnTextOrNumber(r *rule, verdicts map[string]verdict) {
	for _, key := range slices.Sorted(maps.Keys(verdicts)) {
		text, err := strconv.Unquote(key)
		if err != nil {
			continue
		}
		e := verdicts[key].single()
		switch {
		case e == nil:
		case text == "abc":
			r.refuse("text", *e)
		case text == "150%":
			r.refuse("percent>100", *e)
		case text == "-5%":
			r.refuse("percent<0", *e)
		}
	}
	if len(verdicts[`"abc"`].refused) == 0 && len(verdicts[`"a b"`].refused) > 0 {
		r.Values = "portName"
	}
}

func (f fieldRecords) learnUnique(r *rule) {
	by := map[string]int{}
	with := 0
	for _, record := range f.records {
		list, _ := record.value.([]any)
		if len(list) == 0 {
			continue
		}
		with++
		for _, a := range record.answers {
			if doubled, _ := a.value.([]any); len(doubled) != len(list)+1 {
				continue
			}
			prefix := record.String() + "[" + strconv.Itoa(len(list)) + "]"
			for _, e := range a.create {
				if rest, ok := strings.CutPrefix(e.Path, prefix); ok && e.Type == field.ErrorTypeDuplicate {
					if _, isObject := list[0].(object); isObject == (rest != "") {
						by[rest]++
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if by[name] == with && strings.Count(name, ".") <= 1 {
			name = strings.TrimPrefix(name, ".")
			r.Unique = &name
			return
		}
	}
}

// learnMap learns the formats of keys and values of a map.
func (f fieldRecords) learnMap(r *rule) {
	keys, values := map[string][]string{}, map[string][]string{}
	for _, record := range f.records {
		m, _ := record.value.(object)
		for _, a := range record.answers {
			other, ok := a.value.(object)
			if !ok || len(other) == 0 {
				continue
			}
			for _, text := range texts {
				_, was := m[text]
				if _, is := other[text]; is && !was && len(other) == len(m)+1 {
					keys[text] = detailsAt(record, a)
				}
			}
			for k, v := range other {
				if text, ok := v.(string); ok && len(other) == len(m) && m[k] != v {
					values[text] = detailsAt(record, a)
				}
			}
		}
	}
	if len(keys) >= len(texts)-2 {
		r.Keys = formatOf(keys)
	}
	if len(values) >= len(texts)-2 {
		r.Values = formatOf(values)
	}
}

func detailsAt(r record, a answer) []string {
	var out []string
	for _, e := range a.create {
		if e.Path == r.String() {
			out = append(out, e.Detail)
		}
	}
	return out
}
