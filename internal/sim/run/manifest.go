// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Manifest is one object of a file.
type Manifest struct {
	File   string
	Number int // of the document in the file, from 1, not counting empty ones
	Object *unstructured.Unstructured

	placeholder bool // as kubebuilder has written it, for the user to fill in
}

// Where returns the place of the manifest, for messages.
func (m Manifest) Where() string { return fmt.Sprintf("%s, document %d", m.File, m.Number) }

// ReadManifests returns all objects of a YAML or JSON file, including those in lists.
func ReadManifests(file string) ([]Manifest, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var manifests []Manifest
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return manifests, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s, document %d: %w", file, number, err)
		}
		content, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("reading %s, document %d: %w", file, number, err)
		}
		if len(content) == 0 {
			continue
		}
		objects, err := objectsOf(content)
		if err != nil {
			return nil, fmt.Errorf("reading %s, document %d: %w", file, number, err)
		}
		for _, object := range objects {
			manifests = append(manifests, Manifest{File: file, Number: number, Object: object, placeholder: bytes.Contains(document, []byte("TODO(user)"))})
		}
	}
}

// decode reads a document. Whole numbers become int64, as the API machinery expects.
func decode(document []byte) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(asJSON, &content); err != nil {
		return nil, errors.New("not an object")
	}
	return content, nil
}

// objectsOf returns the objects that a document holds.
func objectsOf(content map[string]any) ([]*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: content}
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, errors.New("kind or apiVersion is missing")
	}
	if !object.IsList() {
		if object.GetName() == "" && object.GetGenerateName() == "" {
			return nil, fmt.Errorf("the %s has no name", object.GetKind())
		}
		return []*unstructured.Unstructured{object}, nil
	}
	var objects []*unstructured.Unstructured
	for _, item := range content["items"].([]any) {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("an item of the %s is not an object", object.GetKind())
		}
		inner, err := objectsOf(fields)
		if err != nil {
			return nil, err
		}
		objects = append(objects, inner...)
	}
	return objects, nil
}

// ReadDefinitions returns the custom resource definitions among the objects of files.
func ReadDefinitions(files []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		manifests, err := ReadManifests(file)
		if err != nil {
			return nil, err
		}
		for _, manifest := range manifests {
			if manifest.Object.GetKind() != "CustomResourceDefinition" {
				continue
			}
			definition := new(apiextensionsv1.CustomResourceDefinition)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object.Object, definition); err != nil {
				return nil, fmt.Errorf("reading the definition in %s: %w", manifest.Where(), err)
			}
			definitions = append(definitions, definition)
		}
	}
	return definitions, nil
}
