// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"strings"
	"testing"
)

func TestBadNames(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(p *Project, a *API)
		want   string
	}{
		{"project name", func(p *Project, _ *API) { p.Name = "My_Op" }, `--project-name "My_Op": a lowercase RFC 1123 label must consist of`},
		{"domain", func(p *Project, _ *API) { p.Domain = "Example.com" }, `--domain "Example.com": a lowercase RFC 1123 subdomain must consist of`},
		{"domain without a dot", func(p *Project, _ *API) { p.Domain = "local" }, `--domain "local" has no dot: API groups end in the name of a domain, such as example.com`},
		{"repo", func(p *Project, _ *API) { p.Repo = "example.com/my op" }, `--repo "example.com/my op": malformed import path`},
		{"no group", func(_ *Project, a *API) { a.Group = "" }, `--group is empty: name the API group without the domain, such as web`},
		{"group", func(_ *Project, a *API) { a.Group = "web_app" }, `--group "web_app": a lowercase RFC 1123 subdomain must consist of`},
		{"group with the domain", func(_ *Project, a *API) { a.Group = "web.example.com" }, `--group "web.example.com" contains the domain example.com, which is added to it: write web`},
		{"group is the domain", func(_ *Project, a *API) { a.Group = "example.com" }, `--group "example.com" contains the domain example.com, which is added to it: write web`},
		{"keyword as group", func(_ *Project, a *API) { a.Group = "func" }, `--group "func" is a keyword of Go`},
		{"long group", func(_ *Project, a *API) { a.Group = strings.Repeat("abcdefghi.", 24) + "abcdef" }, `with the domain it has 258 characters, more than 253`},
		{"version", func(_ *Project, a *API) { a.Version = "1" }, `--version "1": want a version of an API, such as v1, v1beta2 or v1alpha1`},
		{"no kind", func(_ *Project, a *API) { a.Kind = "" }, `--kind is missing: name the kind in CamelCase, such as Guestbook`},
		{"kind", func(_ *Project, a *API) { a.Kind = "guest-book" }, `--kind "guest-book": want CamelCase, such as GuestBook`},
		{"keyword as kind", func(_ *Project, a *API) { a.Kind = "Interface" }, `--kind "Interface": interface is a keyword of Go`},
		{"list", func(_ *Project, a *API) { a.Kind = "PageList" }, `--kind "PageList" ends in List`},
		{"long kind", func(_ *Project, a *API) { a.Kind = "A" + strings.Repeat("b", 63) }, `has 64 characters, more than 63`},
		{"plural", func(_ *Project, a *API) { a.Plural = "Pages" }, `--plural "Pages": a DNS-1035 label must consist of`},
		{"children", func(_ *Project, a *API) { a.Children = "pod" }, `--children "pod": want deployment, configmap, external or none`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, a := guestbook(t.TempDir())
			tt.change(p, &a)
			if _, err := Init(p, a, requirements); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// A group needs a domain, if it has no dot itself.
func TestGroupWithoutDomain(t *testing.T) {
	_, a := guestbook(t.TempDir())
	if err := a.check(""); err == nil || err.Error() != "--domain is empty: the API group guestbook needs one, such as example.com" {
		t.Errorf("got %v", err)
	}
	a.Group = "guestbook.example.com"
	if err := a.check(""); err != nil {
		t.Errorf("a group with a dot: %v", err)
	}
}

func TestEveryMistakeIsReported(t *testing.T) {
	p, a := guestbook(t.TempDir())
	p.Name, a.Version, a.Kind = "A", "one", "b"
	_, err := Init(p, a, requirements)
	for _, flag := range []string{"--project-name", "--version", "--kind"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("got %v, want a line for %s", err, flag)
		}
	}
}

func TestPlural(t *testing.T) {
	for word, want := range map[string]string{
		"guestbook": "guestbooks", "box": "boxes", "policy": "policies", "gateway": "gateways", "bus": "buses", "batch": "batches", "mesh": "meshes", "y": "ys",
	} {
		if got := Plural(word); got != want {
			t.Errorf("Plural(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestCamelCase(t *testing.T) {
	for words, want := range map[string]string{"guestbook": "Guestbook", "guest-book": "GuestBook", "my_app.v2": "MyAppV2", "42": "Example", "": "Example"} {
		if got := CamelCase(words); got != want {
			t.Errorf("CamelCase(%q) = %q, want %q", words, got, want)
		}
	}
}
