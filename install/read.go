// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// A Definition is a CustomResourceDefinition.
type Definition = apiextensionsv1.CustomResourceDefinition

// Read returns the definitions in files, and in the YAML and JSON files below directories, sorted
// by name. Other objects in them are left out, such as those of Kustomize. The error names the file
// that can't be read, each file or directory without a definition, and a definition that is there
// twice.
func Read(fsys fs.FS, paths ...string) ([]*Definition, error) {
	var all []*Definition
	var failures []error
	from := map[string]string{}
	for _, p := range paths {
		found := 0
		err := fs.WalkDir(fsys, path.Clean(p), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || file != path.Clean(p) && !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file)) {
				return err
			}
			data, err := fs.ReadFile(fsys, file)
			if err != nil {
				return err
			}
			definitions, err := Parse(data)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, d := range definitions {
				if first, twice := from[d.Name]; twice {
					return fmt.Errorf("%s: %s is in %s, too", file, d.Name, first)
				}
				from[d.Name] = file
			}
			found += len(definitions)
			all = append(all, definitions...)
			return nil
		})
		if err == nil && found == 0 {
			err = fmt.Errorf("%s has no CustomResourceDefinition", p)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("reading definitions: %w", err))
		}
	}
	slices.SortFunc(all, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(failures...)
}

// Parse returns the definitions among the documents of a YAML or JSON stream. It refuses fields that
// a definition does not have: the API server would leave them out silently.
func Parse(data []byte) ([]*Definition, error) {
	var all []*Definition
	reader := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var kind metav1.TypeMeta
		if err == nil {
			err = yaml.Unmarshal(document, &kind)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if kind.Kind != "CustomResourceDefinition" {
			continue
		}
		if kind.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			return nil, fmt.Errorf("document %d: a definition of %q: make it one of %s", n, kind.APIVersion, apiextensionsv1.SchemeGroupVersion)
		}
		d := &Definition{}
		if err := yaml.UnmarshalStrict(document, d); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if err := check(d); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		all = append(all, d)
	}
}

// check finds what would make a definition useless for an upgrade. The API server checks the rest.
func check(d *Definition) error {
	if want := d.Spec.Names.Plural + "." + d.Spec.Group; d.Name != want || d.Spec.Names.Plural == "" || d.Spec.Group == "" {
		return fmt.Errorf("its name is %q, and by its group and plural it must be %q", d.Name, want)
	}
	stored := 0
	names := map[string]bool{}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if v.Name == "" || names[v.Name] {
			return fmt.Errorf("%s: a version has no name, or that of another one: %q", d.Name, v.Name)
		}
		if names[v.Name] = true; v.Storage {
			stored++
		}
	}
	if stored != 1 {
		return fmt.Errorf("%s: %d versions are marked with storage, and it must be one", d.Name, stored)
	}
	return nil
}
