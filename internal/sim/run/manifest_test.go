// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadManifests(t *testing.T) {
	dir := layOut(t, `
-- good.yaml --
# nothing but a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {n: "1"}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
- {apiVersion: demo.dev/v1, kind: Database, metadata: {generateName: db-}, spec: {replicas: 3}}
-- good.json --
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
-- nameless.yaml --
apiVersion: v1
kind: ConfigMap
-- kindless.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
metadata: {name: b}
-- list.yaml --
{apiVersion: v1, kind: List, items: [3]}
-- text.yaml --
just a text
-- broken.yaml --
a: [
`)
	var got []string
	for _, name := range []string{"good.yaml", "good.json"} {
		manifests, err := ReadManifests(filepath.Join(dir, name))
		must(t, err)
		for _, manifest := range manifests {
			got = append(got, manifest.Object.GetKind()+" "+manifest.Object.GetName()+manifest.Object.GetGenerateName()+strings.TrimPrefix(manifest.Where(), dir))
			manifest.Object.DeepCopy() // panics on numbers that are not as the API machinery wants them
		}
	}
	want := []string{"ConfigMap a/good.yaml, document 2", "Secret b/good.yaml, document 3", "Database db-/good.yaml, document 3", "ConfigMap c/good.json, document 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"nameless.yaml": "document 1: the ConfigMap has no name",
		"kindless.yaml": "document 2: kind or apiVersion is missing",
		"list.yaml":     "an item of the List is not an object",
		"text.yaml":     "document 1: not an object",
		"broken.yaml":   "document 1:",
		"missing.yaml":  "no such file",
	} {
		if _, err := ReadManifests(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that contains %q", name, err, want)
		}
	}
}

func TestDefinitionsAndTheirKinds(t *testing.T) {
	dir := layOut(t, `
-- crds.yaml --
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.demo.dev}
spec:
  group: demo.dev
  scope: Namespaced
  names: {kind: Database, plural: databases, shortNames: [db]}
  versions:
  - {name: v1alpha1, served: false, storage: false}
  - {name: v1beta1, served: true, storage: false}
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: URL, type: string, jsonPath: .status.url}
    - {name: Detail, type: string, jsonPath: .status.detail, priority: 1}
`)
	definitions, err := ReadDefinitions([]string{filepath.Join(dir, "crds.yaml")})
	must(t, err)
	if len(definitions) != 1 {
		t.Fatalf("got %d definitions, want 1", len(definitions))
	}
	kind := definedKind(definitions[0])
	if kind.GroupVersionKind.String() != "demo.dev/v1, Kind=Database" || !kind.Operators {
		t.Errorf("got %+v", kind)
	}
	if diff := cmp.Diff([]Column{{Name: "URL", Path: ".status.url"}}, kind.Columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	for _, name := range []string{"Database", "databases", "db", "DB", "database.demo.dev"} {
		if !kind.answersTo(name) {
			t.Errorf("it does not answer to %q", name)
		}
	}
	for _, name := range []string{"database.apps", "data", ""} {
		if kind.answersTo(name) {
			t.Errorf("it answers to %q", name)
		}
	}
}
