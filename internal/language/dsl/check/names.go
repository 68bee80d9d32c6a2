// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// generatedVariables are the receivers, parameters and variables of the generated methods that have
// a state as a parameter as well.
var generatedVariables = []string{"ctx", "err", "impl", "logger", "m", "result", "s", "state", "target"}

// hookMethods are the methods of the interface that every implementation of a manager embeds.
var hookMethods = []string{"AfterActionRun", "BeforeActionRun"}

// identifier reports whether Go accepts the name, and adds a diagnostic if it does not.
func (d *document) identifier(w ast.Word, what string) bool {
	first, _ := utf8.DecodeRuneInString(w.Text)
	switch {
	case w.Text == "":
		return false
	case !unicode.IsLetter(first):
		d.report(diag.BadName, w, fmt.Sprintf("%s %q does not begin with a letter", what, w.Text), identifierHint(strings.TrimLeftFunc(w.Text, notLetter)))
		return false
	case !isIdentifier(w.Text):
		d.report(diag.BadName, w, fmt.Sprintf("%s %q is not an identifier", what, w.Text), identifierHint(w.Text))
		return false
	}
	return true
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

func isIdentifier(name string) bool {
	return token.IsIdentifier(name) || token.IsKeyword(name)
}

// identifierHint suggests the name without the characters that are not allowed, if that is an
// identifier.
func identifierHint(name string) string {
	var b strings.Builder
	upper := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_':
			upper = true
		case upper:
			b.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			b.WriteRune(r)
		}
	}
	if !token.IsIdentifier(b.String()) {
		return "use letters, digits and underscores, with a letter first"
	}
	return "write " + b.String()
}

// exported reports whether the name can be an exported Go name, and adds a diagnostic if it cannot.
func (d *document) exported(w ast.Word, what string) bool {
	if !d.identifier(w, what) {
		return false
	}
	first, size := utf8.DecodeRuneInString(w.Text)
	if unicode.IsUpper(first) {
		return true
	}
	hint := "begin with a capital letter"
	if upper := unicode.ToUpper(first); upper != first {
		hint = "write " + string(upper) + w.Text[size:]
	}
	d.report(diag.NotExported, w, fmt.Sprintf("%s %q does not begin with a capital letter", what, w.Text), hint)
	return false
}

// stateName reports a name that a parameter of the generated methods cannot have.
func (d *document) stateName(w ast.Word) {
	if !d.identifier(w, "state") {
		return
	}
	reason := ""
	switch {
	case token.IsKeyword(w.Text):
		reason = "is a keyword of Go"
	case types.Universe.Lookup(w.Text) != nil:
		reason = "is a predeclared identifier of Go"
	case slices.Contains(generatedVariables, w.Text):
		reason = "is a variable of the generated code"
	default:
		return
	}
	d.report(diag.ReservedName, w, fmt.Sprintf("state cannot be called %q: it %s", w.Text, reason), "give it another name")
}

// capitalized returns the name with its first letter in upper case, as in the getter of a state.
func capitalized(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}

// generatedNames are the exported names that a manager adds to its Go package.
func generatedNames(manager string, actions []string) []string {
	names := []string{
		manager, manager + "State", manager + "StateGetter", manager + "FakeState", manager + "Impl",
		"New" + manager, "New" + manager + "State", "Index" + manager, "Watch" + manager,
	}
	for _, action := range actions {
		names = append(names, manager+"Action"+action)
	}
	return names
}

// managerCollisions reports managers that would declare the same Go name, and those that would
// declare the name of an API type of the same package.
func (c *checker) managerCollisions() {
	owners := map[string]string{}
	for _, manager := range c.order {
		self := c.managers[manager]
		generated := generatedNames(manager, self.actions)
		for _, name := range generated {
			if owner, ok := owners[name]; ok {
				self.document.report(diag.NameCollision, self.word, fmt.Sprintf("managers %s and %s both generate %s", owner, manager, name),
					"give one of them another name", c.managers[owner].related()...)
				break
			}
		}
		for _, name := range generated {
			if _, ok := owners[name]; !ok {
				owners[name] = manager
			}
			if c.ownTypes[name] {
				self.document.report(diag.NameCollision, self.word, fmt.Sprintf("%s is also the name of an API type in this package", name),
					"give the manager another name")
			}
		}
	}
}

func uncapitalized(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(first)) + name[size:]
}

// maxListed is the number of names that a hint lists.
const maxListed = 10

// someOf is a hint that lists the names that there are, of states or kinds.
func someOf(what string, names []string) string {
	switch {
	case len(names) == 1:
		return "the only " + what + " is " + names[0]
	case len(names) <= maxListed:
		return "the " + what + "s are " + listOf(names)
	}
	return fmt.Sprintf("the %ss are %s and %d more", what, strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}

// listOf joins names as prose does.
func listOf(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}
