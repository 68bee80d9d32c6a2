// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"slices"
	"strings"
	"unicode"
)

// looseStart is how many letters and digits a value has at least of which a trace is searched.
const looseStart = 10

// A Trace says which values a text still has.
type Trace struct {
	// Named are the values that stay because they are names or words, or that are found nevertheless.
	Named []string

	// Unsure are the values of which a text has the letters and digits in their order, as if they were
	// written in a form that is not known; and, if a text was not searched in all of
	// its forms, [TooDeep].
	Unsure []string
}

// TooDeep is said of a text that was not searched in all of its forms.
const TooDeep = "a text has so many escapes, or is encoded so often, that it was not searched in all of its forms"

// Trace says which values texts have in which all were replaced. It is another search than that of
// [Values.Replace], so that a form that one lacks is found by the other.
func (v *Values) Trace(texts []string) Trace {
	var t Trace
	all := &Values{list: v.list} // names, too
	named, unsure := map[string]bool{}, map[string]bool{}
	for _, text := range texts {
		s := &searching{v: all}
		s.standIn = func(found string) string {
			for _, one := range v.list {
				if one.text == found {
					named[one.of] = true
				}
			}
			return found
		}
		s.spans(text, 0)
		if s.over {
			unsure[TooDeep] = true
		}
		for _, of := range v.traces(text) {
			unsure[of] = true
		}
	}
	for of := range named {
		t.Named = append(t.Named, of)
		delete(unsure, of)
	}
	for of := range unsure {
		t.Unsure = append(t.Unsure, of)
	}
	slices.Sort(t.Named)
	slices.Sort(t.Unsure)
	return t
}

// traces returns whose letters and digits a text has.
func (v *Values) traces(text string) []string {
	if v.squeezed == nil {
		v.squeezed = map[[looseStart]byte][]value{}
		for _, one := range v.list {
			letters := core(one.text)
			if len(letters) < looseStart || IsWord(letters) || v.names[one.text] {
				continue
			}
			start := [looseStart]byte([]byte(letters[:looseStart]))
			v.squeezed[start] = append(v.squeezed[start], value{one.of, letters})
		}
	}
	if len(v.squeezed) == 0 {
		return nil
	}
	plain, _ := spelled(text).unescaped()
	text = core(plain)
	var found []string
	for i := 0; i+looseStart <= len(text); i++ {
		for _, one := range v.squeezed[[looseStart]byte([]byte(text[i:i+looseStart]))] {
			if strings.HasPrefix(text[i:], one.text) {
				found = append(found, one.of)
			}
		}
	}
	return found
}

// core returns the letters and digits of a text, in lower case.
func core(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
