// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
)

// texts are details as templates have them.
type texts map[string]string

// errNoDetail has the text of the error of a field of a map that is not there.
func errNoDetail(name string) error { return fmt.Errorf("map has no entry for key %q", name) }

// noDetail finds the name of a detail in the error of a template, which has no value of one.
var noDetail = regexp.MustCompile(`map has no entry for key "([^"]*)"`)

// index replaces the function of templates, which has an empty text for a detail that is not there,
// although a field fails: {{index . "ca.crt"}} is {{.ca}} for a name that is no identifier.
func index(item any, keys ...any) (any, error) {
	for _, key := range keys {
		switch of := item.(type) {
		case texts:
			name, ok := key.(string)
			if !ok {
				return nil, errors.New("the key of a detail is a string")
			}
			value, ok := of[name]
			if !ok {
				return nil, errNoDetail(name)
			}
			item = value
		case string:
			n, ok := key.(int)
			if !ok || n < 0 || n >= len(of) {
				return nil, errors.New("index out of range")
			}
			item = of[n]
		default:
			return nil, fmt.Errorf("can't index item of type %T", item)
		}
	}
	return item, nil
}

// anyDetail stands for the name of a detail that a range over all details looks for.
const anyDetail = "a detail that its range finds"

// execute returns the text of a template, or the detail that it lacks.
func execute(key, text string, details map[string][]byte) (value []byte, missing string, err error) {
	tmpl, err := template.New(key).Funcs(template.FuncMap{"index": index}).Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, "", err
	}
	all := make(texts, len(details))
	for key, value := range details {
		all[key] = string(value)
	}
	var b strings.Builder
	if err := tmpl.Execute(&b, all); err != nil {
		if found := noDetail.FindStringSubmatch(err.Error()); found != nil {
			return nil, found[1], nil
		}
		// The errors of functions, such as index and slice, may quote their arguments.
		return nil, "", errors.New("its template can't be executed")
	}
	if b.Len() == 0 && ranges(tmpl) {
		return nil, anyDetail, nil
	}
	return []byte(b.String()), "", nil
}

// ranges reports whether a template goes over details instead of naming them.
func ranges(tmpl *template.Template) bool {
	for _, t := range tmpl.Templates() {
		if t.Tree != nil && strings.Contains(t.Root.String(), "{{range ") {
			return true
		}
	}
	return false
}

// isDetail reports whether a template gives a detail as it is, whatever else is known.
func isDetail(text, detail string) bool {
	const some = "\x00"
	value, missing, err := execute("", text, map[string][]byte{detail: []byte(some)})
	return err == nil && missing == "" && string(value) == some
}
