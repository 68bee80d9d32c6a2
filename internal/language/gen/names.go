// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"go/token"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// A scope hands out identifiers, each of them once.
type scope map[string]bool

func newScope(taken ...string) scope {
	s := scope{}
	for _, name := range taken {
		s[name] = true
	}
	return s
}

// predeclared are the identifiers that generated code uses in their predeclared meaning.
var predeclared = []string{"error", "int64", "map", "nil", "string", "uint64", "bool"}

// take returns name if it is a free identifier, and otherwise name with the suffix, followed by a
// number if that is not free either.
func (s scope) take(name, suffix string) string {
	candidate := name
	for i := 2; s[candidate] || token.IsKeyword(candidate); i++ {
		switch {
		case candidate == name && suffix != "":
			candidate = name + suffix
		default:
			candidate = name + suffix + strconv.Itoa(i)
		}
	}
	s[candidate] = true
	return candidate
}

// exported returns name with an upper-case first letter.
func exported(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}

// unexported returns name with its first word in lower case: crdSync for CRDSync, crds for CRDs.
func unexported(name string) string {
	if acronym, plural := strings.CutSuffix(name, "s"); plural && acronym == strings.ToUpper(acronym) {
		return strings.ToLower(name)
	}
	letters := []rune(name)
	for i := range letters {
		lastOfRun := i > 0 && i+1 < len(letters) && !unicode.IsUpper(letters[i+1])
		if !unicode.IsUpper(letters[i]) || lastOfRun && unicode.IsLetter(letters[i+1]) {
			break
		}
		letters[i] = unicode.ToLower(letters[i])
	}
	return string(letters)
}

// camel joins the words of a path such as .spec.node-name to SpecNodeName.
func camel(path string) string {
	var joined strings.Builder
	for _, word := range strings.FieldsFunc(path, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		joined.WriteString(exported(word))
	}
	return joined.String()
}

// managerNames are the exported names that a manager adds to its package.
type managerNames struct {
	State, StateGetter, FakeState, Impl, NewState, New, Index, Watch string
}

func namesOf(manager *model.Manager) managerNames {
	upper := exported(manager.Name)
	return managerNames{
		State:       manager.Name + "State",
		StateGetter: manager.Name + "StateGetter",
		FakeState:   manager.Name + "FakeState",
		Impl:        manager.Name + "Impl",
		NewState:    "New" + upper + "State",
		New:         "New" + upper,
		Index:       "Index" + upper,
		Watch:       "Watch" + upper,
	}
}

// all returns the names, that of the manager itself first.
func (n managerNames) all(manager *model.Manager) []string {
	names := []string{manager.Name, n.State, n.StateGetter, n.FakeState, n.Impl, n.NewState, n.New, n.Index, n.Watch}
	for _, action := range manager.Actions {
		names = append(names, constOf(manager, action))
	}
	return names
}

// constOf returns the name of the constant that holds the name of an action.
func constOf(manager *model.Manager, action *model.Action) string {
	return manager.Name + "Action" + exported(action.Name)
}

// packageNames hands out the package's own identifiers.
type packageNames struct {
	scope scope
	only  map[string]bool // model.Package.Singles
}

func newPackageNames(pkg *model.Package) *packageNames {
	names := &packageNames{scope: newScope(predeclared...), only: pkg.Singles()}
	for _, document := range pkg.Documents {
		for _, name := range ownImportNames() {
			names.scope[name] = true
		}
		for _, manager := range document.Managers {
			for _, name := range namesOf(manager).all(manager) {
				names.scope[name] = true
			}
		}
	}
	return names
}
