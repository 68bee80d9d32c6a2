// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ctrlkit/ctrlkit/install"
)

const widgetsFile = `# comment
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
`

func TestRead(t *testing.T) {
	other := strings.NewReplacer("widgets", "gadgets", "Widget", "Gadget").Replace(widgetsFile)
	files := fstest.MapFS{
		"crd/b.yaml": {Data: []byte(widgetsFile)}, "crd/below/a.yml": {Data: []byte(other)}, "crd/README.md": {Data: []byte("no: [")},
		"twice.yaml": {Data: []byte(widgetsFile)}, "none.yaml": {Data: []byte("kind: List")},
		"old.yaml":      {Data: []byte(strings.Replace(widgetsFile, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1))},
		"misspelt.yaml": {Data: []byte(strings.Replace(widgetsFile, "scope:", "scop:", 1))},
		"name.yaml":     {Data: []byte(strings.Replace(widgetsFile, "name: widgets.", "name: wigs.", 1))},
		"stored.yaml":   {Data: []byte(strings.Replace(widgetsFile, "storage: true", "storage: false", 1))},
	}
	definitions, err := install.Read(files, "crd")
	if err != nil || len(definitions) != 2 || definitions[0].Name != "gadgets.example.com" {
		t.Errorf("%d definitions: %v", len(definitions), err)
	}
	for file, want := range map[string]string{
		"old.yaml": "make it one of apiextensions.k8s.io/v1", "misspelt.yaml": `unknown field "scop"`, "none.yaml": "has no CustomResourceDefinition",
		"name.yaml": "must be \"widgets.example.com\"", "stored.yaml": "0 versions are marked", "missing.yaml": "does not exist",
	} {
		if _, err := install.Read(files, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
	if _, err := install.Read(files, "crd", "twice.yaml"); err == nil || !strings.Contains(err.Error(), "is in crd/b.yaml, too") {
		t.Errorf("twice: %v", err)
	}
}

// FuzzParse reads any bytes: what is read can be used by an installer.
func FuzzParse(f *testing.F) {
	f.Add([]byte(widgetsFile))
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{}]}}`))
	f.Add([]byte("---\n---\n: ["))
	f.Fuzz(func(t *testing.T, data []byte) {
		definitions, err := install.Parse(data)
		if err != nil {
			return
		}
		for _, d := range definitions {
			if d.Name != d.Spec.Names.Plural+"."+d.Spec.Group || len(d.Spec.Versions) == 0 {
				t.Errorf("%q with %d versions", d.Name, len(d.Spec.Versions))
			}
		}
	})
}
