// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/ctrlkit/ctrlkit/apply"
)

// read returns the objects of all .yaml files of a directory, as a set: Namespaces and definitions
// come first.
func read(dir string) (*apply.Set, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no .yaml file in %s", dir) // or all objects would be deleted
	}
	set := &apply.Set{}
	for _, file := range files {
		if err := readFile(file, set); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return set, nil
}

func readFile(name string, set *apply.Set) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		obj := &unstructured.Unstructured{}
		switch err := documents.Decode(&obj.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(obj.Object) == 0: // only comments
		case obj.IsList():
			if err := obj.EachListItem(func(item runtime.Object) error { add(set, item.(*unstructured.Unstructured)); return nil }); err != nil {
				return err
			}
		default:
			add(set, obj)
		}
	}
}

func add(set *apply.Set, obj *unstructured.Unstructured) {
	switch obj.GetKind() {
	case "Namespace", "CustomResourceDefinition":
		set.Add(obj, apply.Wave(-1))
	default:
		set.Add(obj)
	}
}
