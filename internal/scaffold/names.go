// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Children are the objects that a new kind keeps for each of its objects.
type Children string

const (
	ChildrenDeployment Children = "deployment" // a Deployment and a Service
	ChildrenConfigMap  Children = "configmap"
	ChildrenExternal   Children = "external" // a resource in a system outside the cluster
	ChildrenNone       Children = "none"     // the status is all that is written
)

// AllChildren are the values of Children.
var AllChildren = []Children{ChildrenDeployment, ChildrenConfigMap, ChildrenExternal, ChildrenNone}

// An API is a kind that is added to a project.
type API struct {
	Group    string // without the domain
	Version  string
	Kind     string
	Plural   string // of the lower-cased kind; empty for what [Plural] makes of it
	Children Children
	Document bool // whether a document of the language reads Pods: those of the Deployment, or those that use the object
}

// A NameError is a mistake in what the user has named, with the flag that it was named by.
type NameError struct {
	Flag string
	Err  error
}

func (e *NameError) Error() string { return "--" + e.Flag + " " + e.Err.Error() }
func (e *NameError) Unwrap() error { return e.Err }

func nameError(flag, format string, args ...any) error {
	return &NameError{Flag: flag, Err: fmt.Errorf(format, args...)}
}

var (
	camelCase   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	apiVersion  = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	wordBorders = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// check returns every mistake in the names of the kind.
func (a API) check(domain string) error {
	return errors.Join(a.CheckGroup(domain), a.CheckVersion(), a.CheckKind(), a.CheckChildren())
}

// CheckGroup returns the mistake in the group, which the domain is added to. It is a [NameError].
func (a API) CheckGroup(domain string) error {
	if a.Group == "" {
		return nameError("group", "is empty: name the API group without the domain, such as web")
	}
	if problems := validation.IsDNS1123Subdomain(a.Group); len(problems) > 0 {
		return nameError("group", "%q: %s", a.Group, problems[0])
	}
	if domain != "" && (a.Group == domain || strings.HasSuffix(a.Group, "."+domain)) {
		short := strings.TrimSuffix(strings.TrimSuffix(a.Group, domain), ".")
		if short == "" {
			short = "web"
		}
		return nameError("group", "%q contains the domain %s, which is added to it: write %s", a.Group, domain, short)
	}
	if token.IsKeyword(a.Group) {
		return nameError("group", "%q is a keyword of Go, and the name of a package in projects with several groups: choose another", a.Group)
	}
	if domain == "" && !strings.Contains(a.Group, ".") {
		return nameError("domain", "is empty: the API group %s needs one, such as example.com", a.Group)
	}
	if qualified := qualify(a.Group, domain); len(qualified) > validation.DNS1123SubdomainMaxLength {
		return nameError("group", "%q: with the domain it has %d characters, more than %d", a.Group, len(qualified), validation.DNS1123SubdomainMaxLength)
	}
	return nil
}

// CheckVersion returns the mistake in the version. It is a [NameError].
func (a API) CheckVersion() error {
	if !apiVersion.MatchString(a.Version) {
		return nameError("version", "%q: want a version of an API, such as v1, v1beta2 or v1alpha1", a.Version)
	}
	return nil
}

// CheckKind returns the mistake in the kind and in its plural. It is a [NameError].
func (a API) CheckKind() error {
	lower := strings.ToLower(a.Kind)
	switch {
	case a.Kind == "":
		return nameError("kind", "is missing: name the kind in CamelCase, such as Guestbook")
	case !camelCase.MatchString(a.Kind):
		return nameError("kind", "%q: want CamelCase, such as %s", a.Kind, CamelCase(a.Kind))
	case len(a.Kind) > validation.DNS1123LabelMaxLength:
		return nameError("kind", "%q has %d characters, more than %d", a.Kind, len(a.Kind), validation.DNS1123LabelMaxLength)
	case token.IsKeyword(lower):
		return nameError("kind", "%q: %s is a keyword of Go, and tools name variables and files after the kind: choose another", a.Kind, lower)
	case strings.HasSuffix(a.Kind, "List"):
		return nameError("kind", "%q ends in List, which is for the type of a list of objects: choose another", a.Kind)
	}
	if problems := validation.IsDNS1035Label(a.plural()); len(problems) > 0 {
		return nameError("plural", "%q: %s", a.plural(), problems[0])
	}
	return nil
}

// CheckChildren returns the mistake in the children. It is a [NameError].
func (a API) CheckChildren() error {
	if !slices.Contains(AllChildren, a.Children) {
		return nameError("children", "%q: want deployment, configmap, external or none", a.Children)
	}
	return nil
}

func (a API) plural() string {
	if a.Plural != "" {
		return a.Plural
	}
	return Plural(strings.ToLower(a.Kind))
}

// qualify returns the API group with the domain.
func qualify(group, domain string) string {
	if domain == "" {
		return group
	}
	return group + "." + domain
}

// Plural returns the plural of a lower-cased word, by the regular rules of English.
func Plural(word string) string {
	for _, ending := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(word, ending) {
			return word + "es"
		}
	}
	if stem, ok := strings.CutSuffix(word, "y"); ok && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])) {
		return stem + "ies"
	}
	return word + "s"
}

// CamelCase makes a kind of any words: guest-book becomes GuestBook. It returns Example for what has
// no letter to begin with.
func CamelCase(words string) string {
	var kind strings.Builder
	for _, word := range wordBorders.Split(words, -1) {
		if word != "" {
			kind.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	if !camelCase.MatchString(kind.String()) {
		return "Example"
	}
	return kind.String()
}

// check returns every mistake in the names of a project.
func (p *Project) check() error {
	var name error
	if problems := validation.IsDNS1123Label(p.Name); len(problems) > 0 {
		name = nameError("project-name", "%q: %s", p.Name, problems[0])
	}
	return errors.Join(name, p.CheckDomain(), p.CheckRepo())
}

// CheckDomain returns the mistake in the domain. It is a [NameError].
func (p *Project) CheckDomain() error {
	if problems := validation.IsDNS1123Subdomain(p.Domain); len(problems) > 0 {
		return nameError("domain", "%q: %s", p.Domain, problems[0])
	}
	if !strings.Contains(p.Domain, ".") {
		return nameError("domain", "%q has no dot: API groups end in the name of a domain, such as example.com", p.Domain)
	}
	return nil
}

// CheckRepo returns the mistake in the path of the module. It is a [NameError].
func (p *Project) CheckRepo() error {
	if err := module.CheckImportPath(p.Repo); err != nil {
		return nameError("repo", "%q: %w", p.Repo, err)
	}
	return nil
}
