// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is one thing that goes wrong in a run, at one place. Places are counted in the order in
// which the run comes to them: writes of the operator (without Events and Leases), its reads that
// go to the API server, its calls of external systems, and the watch events that are delivered to
// it, by kind.
type Fault struct {
	Kind Kind
	At   int           // which write, read, call, event or detour; the first is 1
	Of   string        // which kind ("jobs.batch"), or which object ("secrets default/credentials")
	By   int           // how many events
	How  string        // which answer
	For  time.Duration // how long
}

// String returns the text form, which [Parse] reads.
func (f Fault) String() string {
	return strings.NewReplacer(
		"{at}", strconv.Itoa(f.At), "{of}", f.Of, "{by}", strconv.Itoa(f.By), "{how}", f.How, "{for}", f.For.String(),
	).Replace(f.Kind.entry().pattern)
}

// placeholders are the regular expressions that read the parameters of a pattern.
var placeholders = map[string]string{
	`\{at\}`:  `(?P<at>\d+)`,
	`\{of\}`:  `(?P<of>[^ ;]+(?: [^ ;]*/[^ ;]*)?)`,
	`\{by\}`:  `(?P<by>\d+)`,
	`\{how\}`: `(?P<how>[a-z0-9 ]+)`,
	`\{for\}`: `(?P<for>-?[0-9a-zµ.]+)`,
}

// expressions are the patterns of the table, ready to match.
var expressions = func() []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(table))
	for i, e := range table {
		text := regexp.QuoteMeta(e.pattern)
		for placeholder, expression := range placeholders {
			text = strings.Replace(text, placeholder, expression, 1)
		}
		list[i] = regexp.MustCompile("^" + text + "$")
	}
	return list
}()

// Parse reads the text form of a fault.
func Parse(text string) (Fault, error) {
	text = strings.Join(strings.Fields(text), " ")
	for i, expression := range expressions {
		if match := expression.FindStringSubmatch(text); match != nil {
			return table[i].parse(expression, match)
		}
	}
	return Fault{}, fmt.Errorf("unknown fault %q%s", text, near(text))
}

func (e *entry) parse(expression *regexp.Regexp, match []string) (Fault, error) {
	f := Fault{Kind: e.kind}
	var errs [3]error
	for i, name := range expression.SubexpNames() {
		switch name {
		case "at":
			f.At, errs[0] = strconv.Atoi(match[i])
		case "of":
			f.Of = match[i]
		case "by":
			f.By, errs[1] = strconv.Atoi(match[i])
		case "how":
			f.How = match[i]
		case "for":
			f.For, errs[2] = time.ParseDuration(match[i])
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return Fault{}, fmt.Errorf("reading fault %q: %w", match[0], err)
	}
	if len(e.answers) > 0 && !slices.Contains(e.answers, f.How) {
		return Fault{}, fmt.Errorf("fault %q: unknown answer %q, known are %s", match[0], f.How, strings.Join(e.answers, ", "))
	}
	return f, nil
}

// near suggests the kinds of faults that begin like text.
func near(text string) string {
	first, _, _ := strings.Cut(text, " ")
	var list []string
	for _, e := range table {
		if strings.HasPrefix(e.pattern, first+" ") {
			list = append(list, strconv.Quote(e.pattern))
		}
	}
	if len(list) == 0 {
		return `: a fault reads like "crash after write 3"; docs/simulator-reference.md lists them`
	}
	return ": did you mean " + strings.Join(list, " or ") + "?"
}
