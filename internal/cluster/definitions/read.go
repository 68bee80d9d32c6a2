// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package definitions

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// A Definition is a CustomResourceDefinition.
type Definition = apiextensionsv1.CustomResourceDefinition

// Extensions are those of the files that have definitions.
var Extensions = []string{".yaml", ".yml", ".json"}

// Read returns the definitions in files, and in the YAML and JSON files of directories, without
// those below them. They are sorted by name; of two with the same name the last one counts. Other
// objects are left out, and parts of definitions, such as the patches of Kustomize.
func Read(paths ...string) ([]*Definition, error) {
	byName := map[string]*Definition{}
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if err := readFile(file, byName); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return sorted(byName), nil
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// readFile adds the definitions of a file. Files with another extension have none.
func readFile(file string, to map[string]*Definition) error {
	if !slices.Contains(Extensions, filepath.Ext(file)) {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return parse(data, to)
}

// Parse returns the definitions in the documents of a YAML or JSON text, as [Read] does.
func Parse(data []byte) ([]*Definition, error) {
	byName := map[string]*Definition{}
	if err := parse(data, byName); err != nil {
		return nil, err
	}
	return sorted(byName), nil
}

func sorted(byName map[string]*Definition) []*Definition {
	list := make([]*Definition, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

func parse(data []byte, to map[string]*Definition) error {
	reader := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		d := &Definition{}
		if err := yaml.Unmarshal(document, d); err != nil {
			return err
		}
		if d.Kind == "CustomResourceDefinition" && d.Spec.Names.Kind != "" && d.Spec.Group != "" {
			to[d.Name] = d
		}
	}
}
