// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A pattern is a value, or the middle of one in base64 or in hexadecimal.
type pattern struct {
	text   string
	value  value
	encode func(standIn string) string // nil if it is the value itself
}

// patterns returns what is searched for.
func (v *Values) patterns() map[[Shortest]byte][]pattern {
	if v.byStart != nil {
		return v.byStart
	}
	v.byStart, v.begun = map[[Shortest]byte][]pattern{}, map[string]bool{}
	seen := map[string]bool{}
	for _, one := range v.list {
		if len(one.text) < Shortest || v.names[one.text] || seen[one.text] {
			continue
		}
		seen[one.text] = true
		v.search(pattern{one.text, one, nil})
		if aligned := indentation.ReplaceAllString(one.text, "\n"); aligned != one.text { // with another one in a block of YAML
			v.search(pattern{aligned, one, nil})
		}
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				middle := func(text string) string { return inTheMiddle(e, text, before) }
				v.search(pattern{middle(one.text), one, middle})
			}
		}
		lower := func(text string) string { return hex.EncodeToString([]byte(text)) }
		upper := func(text string) string { return strings.ToUpper(lower(text)) }
		v.search(pattern{lower(one.text), one, lower})
		v.search(pattern{upper(one.text), one, upper})
	}
	for _, list := range v.byStart {
		slices.SortStableFunc(list, func(a, b pattern) int { return len(b.text) - len(a.text) })
	}
	return v.byStart
}

// indentation matches the end of a line with the indentation of the next one. How wide that is does
// not matter: a text is also read without any.
var indentation = regexp.MustCompile(`\r?\n[ \t]*`)

func (v *Values) search(p pattern) {
	if len(p.text) >= Shortest {
		start := [Shortest]byte([]byte(p.text[:Shortest]))
		v.byStart[start] = append(v.byStart[start], p)
		for n := range Shortest {
			v.begun[p.text[:n+1]] = true
		}
	}
}

// inTheMiddle returns the characters of base64 that a text alone decides if so many bytes are
// before it.
func inTheMiddle(e *base64.Encoding, text string, before int) string {
	bits := len(text) * 8
	skipped := (6 - before*8%6) % 6 // bits that share a character with what is before
	first := (before*8 + 5) / 6
	count := max(0, bits-skipped) / 6
	all := e.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	return all[min(first, len(all)):min(first+count, len(all))]
}

// A span is a part of a text to replace.
type span struct {
	from, to int
	with     string
}

// Replace replaces the values in a text by what stands for them, also in what is encoded in it.
func (v *Values) Replace(text string, standIn func(value string) string) string {
	if v.names[text] || len(text) < Shortest {
		return text
	}
	s := &searching{v: v, standIn: standIn}
	return s.replaced(text, 0)
}

// Redact replaces the values in a text by [Hidden].
func (v *Values) Redact(text string) string {
	if v.names[text] || len(text) < Shortest {
		return text
	}
	s := &searching{v: v, standIn: func(string) string { return Hidden }}
	var out strings.Builder
	last := 0
	for _, found := range s.spans(text, 0) {
		out.WriteString(text[last:found.from] + Hidden)
		last = found.to
	}
	return out.String() + text[last:]
}

// In reports whether a text has a value.
func (v *Values) In(text string) bool {
	return len((&searching{v: v, standIn: func(string) string { return Hidden }}).spans(text, 0)) > 0
}

// RedactAny redacts the texts in a value as in JSON. Whole numbers that are values are hidden, too;
// keys that could be names of fields stay.
func (v *Values) RedactAny(content any) any {
	switch c := content.(type) {
	case map[string]any:
		out := make(map[string]any, len(c))
		for key, child := range c {
			if !IsWord(key) {
				key = v.Redact(key)
			}
			out[key] = v.RedactAny(child)
		}
		return out
	case []any:
		out := make([]any, len(c))
		for i, child := range c {
			out[i] = v.RedactAny(child)
		}
		return out
	case string:
		return v.Redact(c)
	case int64:
		if text := strconv.FormatInt(c, 10); v.Redact(text) != text {
			return Hidden
		}
	}
	return content
}

// searching is the search of one text.
type searching struct {
	v       *Values
	standIn func(value string) string
	over    bool // not all was searched
}

func (s *searching) replaced(text string, deep int) string {
	var out strings.Builder
	last := 0
	for _, found := range s.spans(text, deep) {
		out.WriteString(text[last:found.from] + found.with)
		last = found.to
	}
	if last == 0 {
		return text
	}
	return out.String() + text[last:]
}

// spans returns what is to be replaced in a text, in its order. What overlaps is one.
func (s *searching) spans(text string, deep int) []span {
	if len(s.v.patterns()) == 0 {
		return nil
	}
	as := spelled(text)
	found := append(s.inside(as), s.encoded(text, deep)...)
	if plain, places := as.unescaped(); places != nil {
		for _, one := range s.encoded(plain, deep) {
			found = append(found, span{places[one.from], places[one.to], one.with})
		}
	}
	s.over = s.over || as.steps < 0
	slices.SortStableFunc(found, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var apart []span
	for _, one := range found {
		if n := len(apart); n > 0 && one.from < apart[n-1].to {
			apart[n-1].to = max(apart[n-1].to, one.to)
			continue
		}
		apart = append(apart, one)
	}
	return apart
}

// inside returns where a text can be read as a pattern.
func (s *searching) inside(text *spelling) []span {
	var found []span
	for i := 0; i < len(text.text); {
		one, ok := s.begin(text, i)
		if !ok {
			i++
			continue
		}
		found = append(found, one)
		i = one.to
	}
	return found
}

// begin returns the longest pattern as which a text can be read from a place on.
func (s *searching) begin(text *spelling, i int) (span, bool) {
	best := span{from: i}
	for start, ends := range s.v.starts(text, i) {
		for _, p := range s.v.patterns()[start] {
			for _, end := range ends {
				rest, ok := strings.CutPrefix(p.text[Shortest:], end.more)
				if !ok {
					continue
				}
				if to := text.match(rest, end.at); to > best.to {
					best.to = to
					best.with = s.standIn(p.value.text)
					if p.encode != nil {
						best.with = p.encode(best.with)
					}
				}
			}
		}
	}
	return best, best.to > 0
}

// begun is where a text continues after the first bytes of a pattern, and what was read with them.
type begun struct {
	more string
	at   int
}

// starts returns as which starts of patterns the first bytes at a place can be read, with how the
// text continues.
func (v *Values) starts(text *spelling, i int) map[[Shortest]byte][]begun {
	if i+Shortest > len(text.text) || !begins[text.text[i]] && !v.begun[text.text[i:i+1]] {
		return nil
	}
	if text.steps < 0 || isPlain(text.text[i:i+Shortest]) {
		return map[[Shortest]byte][]begun{[Shortest]byte([]byte(text.text[i : i+Shortest])): {{"", i + Shortest}}}
	}
	type state struct {
		read string
		at   int
	}
	all := map[[Shortest]byte][]begun{}
	seen := map[state]bool{}
	list := []state{{"", i}}
	for len(list) > 0 && text.step(1) {
		is := list[len(list)-1]
		list = list[:len(list)-1]
		if len(is.read) >= Shortest || is.at >= len(text.text) {
			if len(is.read) >= Shortest {
				start := [Shortest]byte([]byte(is.read[:Shortest]))
				all[start] = append(all[start], begun{is.read[Shortest:], is.at})
			}
			continue
		}
		for _, r := range text.at(is.at) {
			next := state{is.read + r.plain, is.at + r.n}
			if v.begun[next.read[:min(len(next.read), Shortest)]] && !seen[next] { // what is folded belongs to no value at its begin
				seen[next] = true
				list = append(list, next)
			}
		}
	}
	return all
}

// isPlain reports whether a text can be read in one way only.
func isPlain(text string) bool {
	for i := range len(text) {
		if begins[text[i]] {
			return false
		}
	}
	return true
}

// match returns where a text ends that can be read as a value from a place on, and 0 if it can't.
func (s *spelling) match(value string, from int) int {
	type state struct{ done, at int }
	var seen map[state]bool // made if there is more than one way
	list := []state{{0, from}}
	for len(list) > 0 && (len(list) == 1 || s.step(2)) {
		is := list[len(list)-1]
		list = list[:len(list)-1]
		for is.done < len(value) && is.at < len(s.text) && !begins[s.text[is.at]] && s.text[is.at] == value[is.done] {
			is = state{is.done + 1, is.at + 1}
		}
		if is.done == len(value) {
			return is.at
		}
		if is.at >= len(s.text) || !begins[s.text[is.at]] || seen[is] {
			continue
		}
		if seen == nil {
			seen = map[state]bool{}
		}
		seen[is] = true
		for _, r := range slices.Backward(s.at(is.at)) {
			if strings.HasPrefix(value[is.done:], r.plain) {
				list = append(list, state{is.done + len(r.plain), is.at + r.n})
			}
		}
	}
	return 0
}

// inLines matches base64 in lines of which each but the last is full.
var inLines = regexp.MustCompile(`[A-Za-z0-9+/_-]{16,}(?:` + lineBreak + `[A-Za-z0-9+/_-]{16,})*(?:` + lineBreak + `[A-Za-z0-9+/_-]+)={0,2}`)

// breaks matches the ends of those lines.
var breaks = regexp.MustCompile(lineBreak)

const lineBreak = `(?:(?:\\+r)?\\+n|\r?\n)[ \t]*`

// encoded returns where something is encoded that has values.
func (s *searching) encoded(text string, deep int) []span {
	var found []span
	for _, of := range []struct {
		tokens func(string) [][]int
		decode func(string) (string, func(string) string)
	}{{tokensOfBase64, fromBase64}, {tokensOfHex, fromHex}, {tokensInLines, fromLines}} {
		for _, at := range of.tokens(text) {
			token := text[at[0]:at[1]]
			decoded, encode := of.decode(token)
			for skipped := 1; skipped < 4 && deep < 2 && !plainText(decoded); skipped++ { // what is before may look like base64
				if other, encodeOther := of.decode(token[skipped:]); plainText(other) {
					decoded, encode = other, func(text string) string { return token[:skipped] + encodeOther(text) }
				}
			}
			switch {
			case encode == nil:
			case deep == mostLevels:
				s.over = s.over || plainText(decoded)
			default:
				if hidden := s.replaced(decoded, deep+1); hidden != decoded {
					found = append(found, span{at[0], at[1], encode(hidden)})
				}
			}
		}
	}
	return found
}

func tokensOfBase64(text string) [][]int {
	all := tokens(text, 8, func(c byte) bool { return isAlphanumeric(c) || c == '+' || c == '/' || c == '-' || c == '_' })
	for _, at := range all {
		for range 2 {
			if strings.HasPrefix(text[at[1]:], "=") {
				at[1]++
			}
		}
	}
	return all
}

func tokensOfHex(text string) [][]int {
	return tokens(text, 2*Shortest, func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' })
}

func tokensInLines(text string) [][]int {
	if !strings.Contains(text, "\n") && !strings.Contains(text, `\n`) {
		return nil
	}
	return inLines.FindAllStringIndex(text, -1)
}

// tokens returns where as many bytes in a row as are wanted are of a kind.
func tokens(text string, least int, is func(byte) bool) [][]int {
	var all [][]int
	for begin := 0; begin < len(text); begin++ {
		end := begin
		for end < len(text) && is(text[end]) {
			end++
		}
		if end-begin >= least {
			all = append(all, []int{begin, end})
		}
		begin = end
	}
	return all
}

// plainText reports whether what was decoded may be a text.
func plainText(text string) bool {
	return text != "" && utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\r' && r != '\t' }) < 0
}

func fromLines(token string) (string, func(string) string) {
	return fromBase64(breaks.ReplaceAllString(token, ""))
}

func fromBase64(token string) (string, func(string) string) {
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if decoded, err := e.DecodeString(token); err == nil {
			return string(decoded), func(text string) string { return e.EncodeToString([]byte(text)) }
		}
	}
	return "", nil
}

func fromHex(token string) (string, func(string) string) {
	decoded, err := hex.DecodeString(token[:len(token)/2*2])
	if err != nil {
		return "", nil
	}
	return string(decoded), func(text string) string {
		encoded := hex.EncodeToString([]byte(text))
		if token == strings.ToUpper(token) {
			encoded = strings.ToUpper(encoded)
		}
		return encoded + token[len(token)/2*2:]
	}
}
