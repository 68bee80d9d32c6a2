// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// The files of a project that are read before they are changed.
const (
	projectFile = "PROJECT"
	mainFile    = "cmd/main.go"
	modFile     = "go.mod"

	layout = "go.kubebuilder.io/v4"
)

// ErrNoProject is the error for a directory without a PROJECT file.
var ErrNoProject = errors.New("there is no PROJECT file")

// A Project is what its PROJECT file says.
type Project struct {
	Dir        string     `json:"-"`
	Name       string     `json:"projectName"`
	Domain     string     `json:"domain"`
	Repo       string     `json:"repo"`
	MultiGroup bool       `json:"multigroup"`
	Resources  []Resource `json:"resources"`

	Layout  []string `json:"layout"`
	Version string   `json:"version"`
}

// A Resource is a kind of a project.
type Resource struct {
	API        *struct{} `json:"api"` // nil if its types are elsewhere
	Domain     string    `json:"domain"`
	Group      string    `json:"group"`
	Kind       string    `json:"kind"`
	Version    string    `json:"version"`
	Plural     string    `json:"plural"`
	Controller bool      `json:"controller"`
}

// Open reads the project in a directory. The error wraps ErrNoProject if there is none.
func Open(dir string) (*Project, error) {
	content, err := os.ReadFile(filepath.Join(dir, projectFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNoProject, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the project: %w", err)
	}
	p := &Project{Dir: dir}
	if err := yaml.Unmarshal(content, p); err != nil {
		return nil, fmt.Errorf("reading the project: %s: %w", filepath.Join(dir, projectFile), err)
	}
	if p.Version != "3" || !slices.Contains(p.Layout, layout) {
		return nil, fmt.Errorf("%s: version %q and layout %q: want version \"3\" and layout %s, to which kubebuilder's migration guide leads (https://book.kubebuilder.io/migrations)",
			filepath.Join(dir, projectFile), p.Version, strings.Join(p.Layout, ","), layout)
	}
	return p, nil
}

// Own returns the kinds whose types are in the project.
func (p *Project) Own() []Resource {
	return slices.DeleteFunc(slices.Clone(p.Resources), func(r Resource) bool { return r.API == nil })
}

// has reports whether the project has the kind, in this version.
func (p *Project) has(a API) bool {
	return slices.ContainsFunc(p.Own(), func(r Resource) bool {
		return r.Group == a.Group && r.Version == a.Version && r.Kind == a.Kind
	})
}

// checkNew returns an error if a kind can't be added to the project.
func (p *Project) checkNew(a API) error {
	for _, r := range p.Own() {
		switch {
		case r.Group == a.Group && r.Kind == a.Kind && r.Version != a.Version:
			return nameError("version", "%s: the project has %s in version %s. A further version needs conversions, which kubebuilder create api and kubebuilder create webhook --conversion make", a.Version, a.Kind, r.Version)
		case r.Group != a.Group && !p.MultiGroup:
			return nameError("group", "%s: the kinds of the project are in group %s, and it has room for one. Use --group %s, or make room with kubebuilder edit --multigroup", a.Group, r.Group, r.Group)
		}
	}
	return nil
}

// apiDir returns the directory of the types of a kind.
func (p *Project) apiDir(a API) string {
	if p.MultiGroup {
		return path.Join("api", a.Group, a.Version)
	}
	return path.Join("api", a.Version)
}

// ControllerDir returns the directory of the controller of a kind.
func (p *Project) ControllerDir(a API) string {
	if p.MultiGroup {
		return path.Join("internal/controller", a.Group)
	}
	return "internal/controller"
}

// addResource adds a kind to the text of a PROJECT file, which else stays as it is, unless the file
// has the kind.
func addResource(content []byte, p *Project, a API) ([]byte, error) {
	var there Project
	if err := yaml.Unmarshal(content, &there); err != nil {
		return nil, fmt.Errorf("reading %s: %w", projectFile, err)
	}
	if there.has(a) {
		return content, nil
	}
	var entry strings.Builder
	fmt.Fprintf(&entry, "- api:\n    crdVersion: v1\n    namespaced: true\n  controller: true\n")
	if p.Domain != "" {
		fmt.Fprintf(&entry, "  domain: %s\n", p.Domain)
	}
	fmt.Fprintf(&entry, "  group: %s\n  kind: %s\n  path: %s\n", a.Group, a.Kind, path.Join(p.Repo, p.apiDir(a)))
	// Without a plural, kubebuilder uses that of English. It refuses webhooks for a kind with one that
	// its own flags do not give.
	if a.plural() != Plural(strings.ToLower(a.Kind)) {
		fmt.Fprintf(&entry, "  plural: %s\n", a.plural())
	}
	fmt.Fprintf(&entry, "  version: %s\n", a.Version)

	lines := bytes.SplitAfter(content, []byte("\n"))
	at, inside := -1, false
	for i, line := range lines {
		key := len(line) > 0 && line[0] >= 'a' && line[0] <= 'z'
		switch {
		case inside && key:
			return joinAt(lines, i, entry.String()), nil
		case bytes.HasPrefix(line, []byte("resources:")):
			inside = true
		case bytes.HasPrefix(line, []byte("version:")):
			at = i
		}
	}
	switch {
	case inside:
		return joinAt(lines, len(lines), entry.String()), nil
	case at < 0:
		at = len(lines)
	}
	return joinAt(lines, at, "resources:\n"+entry.String()), nil
}

// joinAt joins lines with a text before the line of a number.
func joinAt(lines [][]byte, at int, text string) []byte {
	return slices.Concat(bytes.Join(lines[:at], nil), []byte(text), bytes.Join(lines[at:], nil))
}
