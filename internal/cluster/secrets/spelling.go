// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A spelling is a text, and the ways to read it if its escapes are removed: those of one format, and
// of formats in formats. Each character may be escaped or not: it matters which values a text can be
// read as, not in which format it is.
type spelling struct {
	text  string
	known map[int][]reading // by the place where they begin
	steps int               // how many more are taken: without, only the bytes themselves are read
}

// spelled returns a text to read.
func spelled(text string) *spelling {
	return &spelling{text: text, steps: mostSteps + mostStepsOfByte*len(text)}
}

// step takes so many steps, and reports whether there were as many.
func (s *spelling) step(n int) bool {
	s.steps -= n
	return s.steps >= 0
}

// A reading is what the beginning of a text stands for, and how many bytes that takes.
type reading struct {
	plain string
	n     int
}

const (
	// window is how many bytes the escapes of a character take at most.
	window = 72

	// mostLevels is how many levels of escapes are removed, and how often what is encoded is decoded.
	mostLevels = 5

	// mostReadings is how many ways to read a place are tried.
	mostReadings = 24

	// mostSteps is how long a text is searched in all of its forms, and for how long more for each of
	// its bytes: one that consists of escapes would take minutes.
	mostSteps, mostStepsOfByte = 300_000, 30
)

// at returns the ways to read the text at a place, with the byte itself first.
func (s *spelling) at(i int) []reading {
	all := []reading{{s.text[i : i+1], 1}}
	if !begins[s.text[i]] || s.steps < 0 {
		return all
	}
	if quote := s.text[i] == '"' || s.text[i] == '\''; quote && (i+1 == len(s.text) || !begins[s.text[i+1]]) {
		return all // most quotes: they are escapes only before another one
	}
	if known, ok := s.known[i]; ok {
		return known
	}
	part := s.text[i:min(len(s.text), i+window)]
	ends := make([]int, len(part))
	for j := range ends {
		ends[j] = j + 1
	}
	r := &remover{all: all, seen: map[string]bool{part: true}}
	r.remove(part, ends, 0)
	all = r.all
	s.step(len(r.seen) * window)
	if s.known == nil {
		s.known = map[int][]reading{}
	}
	s.known[i] = all
	return all
}

// unescaped returns a text without escapes, whichever they are, and where each of its bytes, and
// its end, was before; nil if nothing is escaped.
func (s *spelling) unescaped() (plain string, places []int) {
	if isPlain(s.text) {
		return s.text, nil
	}
	var out strings.Builder
	for i := 0; i < len(s.text); {
		r := reading{s.text[i : i+1], 1}
		if begins[s.text[i]] {
			for _, other := range s.at(i) {
				if other.n > r.n {
					r = other
				}
			}
		}
		out.WriteString(r.plain)
		for range len(r.plain) {
			places = append(places, i)
		}
		i += r.n
	}
	return out.String(), append(places, len(s.text))
}

// A remover collects the ways to read the beginning of a text.
type remover struct {
	all  []reading
	seen map[string]bool
}

// remove adds the ways to read the beginning of a text of which byte i ended at ends[i] before
// levels of escapes were removed.
func (r *remover) remove(text string, ends []int, level int) {
	for _, e := range escapes {
		if len(r.seen) >= mostReadings || !strings.ContainsAny(text, e.begin) {
			continue
		}
		plain, to := make([]byte, 0, len(text)), make([]int, 0, len(text))
		for i := 0; i < len(text); {
			as, n := text[i:i+1], 1
			if strings.IndexByte(e.begin, text[i]) >= 0 {
				if read, length := e.read(text[i:]); length > 0 {
					as, n = read, length
				}
			}
			if one := (reading{as, ends[n-1]}); i == 0 && !slices.Contains(r.all, one) {
				r.all = append(r.all, one)
			}
			for range len(as) {
				to = append(to, ends[i+n-1])
			}
			plain = append(plain, as...)
			i += n
		}
		if next := string(plain); level+1 < mostLevels && next != "" && begins[next[0]] && !r.seen[next] {
			r.seen[next] = true
			r.remove(next, to, level+1)
		}
	}
}

// begins has the bytes with which escapes begin.
var begins = func() (all [256]bool) {
	for _, e := range escapes {
		for i := range len(e.begin) {
			all[e.begin[i]] = true
		}
	}
	return all
}()

// An escape is a way to write characters: read returns what the beginning of a text stands for and
// how many bytes that takes, none if it is no escape. It begins with one of the bytes in begin.
type escape struct {
	begin string
	read  func(text string) (plain string, n int)
}

// escapes are the ways in which texts are written into others.
var escapes = []escape{
	{`\`, backslash},     // JSON, Go, YAML in double quotes, C
	{`%`, percent},       // URLs
	{`%+`, form},         // queries of URLs
	{`&`, entity},        // HTML and XML
	{`\'"`, shell},       // shells, and quotes that are written twice: YAML, SQL, CSV
	{"\r\n", folded("")}, // what is wrapped: base64 and folded scalars
	{"\r\n", folded(" ")},
	{"\r\n", folded("\n")}, // block scalars, and line ends of Windows
}

// controls are the letters after a backslash that stand for one character.
var controls = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", 'e': "\x1b"}

func backslash(text string) (string, int) {
	if len(text) < 2 {
		return "", 0
	}
	switch c := text[1]; {
	case c == 'u' && len(text) >= 6:
		return unicodeEscape(text)
	case c == 'U' && len(text) >= 10:
		if n, err := strconv.ParseUint(text[2:10], 16, 31); err == nil {
			return string(rune(n)), 10
		}
	case c == 'x' && len(text) >= 4:
		if n, err := strconv.ParseUint(text[2:4], 16, 8); err == nil {
			return string([]byte{byte(n)}), 4
		}
	case c >= '0' && c <= '3' && len(text) >= 4:
		if n, err := strconv.ParseUint(text[1:4], 8, 8); err == nil {
			return string([]byte{byte(n)}), 4
		}
	}
	if plain, ok := controls[text[1]]; ok {
		return plain, 2
	}
	return punctuation(text)
}

// unicodeEscape reads \u0026, and the two of them of a character beyond 16 bits.
func unicodeEscape(text string) (string, int) {
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return "", 0
	}
	if n >= 0xd800 && n < 0xdc00 && len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
		if low, err := strconv.ParseUint(text[8:12], 16, 16); err == nil && low >= 0xdc00 && low < 0xe000 {
			return string(rune((n-0xd800)<<10 | (low - 0xdc00) + 0x10000)), 12
		}
	}
	return string(rune(n)), 6
}

// punctuation reads a backslash before what is no letter and no digit.
func punctuation(text string) (string, int) {
	if len(text) < 2 || text[1] >= utf8.RuneSelf || text[1] <= ' ' || isAlphanumeric(text[1]) {
		return "", 0
	}
	return text[1:2], 2
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func percent(text string) (string, int) {
	if len(text) < 3 || text[0] != '%' {
		return "", 0
	}
	n, err := strconv.ParseUint(text[1:3], 16, 8)
	if err != nil {
		return "", 0
	}
	return string([]byte{byte(n)}), 3
}

func form(text string) (string, int) {
	if text[0] == '+' {
		return " ", 1
	}
	return percent(text)
}

// longestEntity is how long the name of a character is at most: &CounterClockwiseContourIntegral;.
const longestEntity = 40

func entity(text string) (string, int) {
	end := strings.IndexByte(text[:min(len(text), longestEntity)], ';') + 1
	if end == 0 {
		return "", 0
	}
	if plain := html.UnescapeString(text[:end]); plain != text[:end] {
		return plain, end
	}
	return "", 0
}

func shell(text string) (string, int) {
	for _, quote := range []struct{ written, plain string }{{`'\''`, `'`}, {`'"'"'`, `'`}, {`''`, `'`}, {`""`, `"`}} {
		if strings.HasPrefix(text, quote.written) {
			return quote.plain, len(quote.written)
		}
	}
	if text[0] == '\\' {
		return punctuation(text)
	}
	return "", 0
}

// lineEnd matches an end of a line with the indentation of the next one.
var lineEnd = regexp.MustCompile(`^\r?\n[ \t]*`)

// folded reads the end of a line as something else.
func folded(as string) func(string) (string, int) {
	return func(text string) (string, int) {
		written := lineEnd.FindString(text)
		if written == as {
			return "", 0
		}
		return as, len(written)
	}
}
