// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package definitions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: FIRST}}
`

func write(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// What is read is what envtest reads.
func TestReadIsEnvtest(t *testing.T) {
	t.Parallel()
	gadgets := strings.NewReplacer("widget", "gadget", "Widget", "Gadget").Replace(widgets)
	dir := write(t, map[string]string{
		"both.yaml":          widgets + "---\n" + gadgets,
		"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
		"patch.yml":          "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {conversion: {strategy: None}}\n",
		"README.md":          "not: [yaml",
		"below/deep.yaml":    strings.ReplaceAll(widgets, "widget", "deep"),
	})
	single := filepath.Join(write(t, map[string]string{"z.yaml": strings.ReplaceAll(widgets, "FIRST", "LAST")}), "z.yaml")
	options := envtest.CRDInstallOptions{Paths: []string{dir, single}, ErrorIfPathMissing: true}
	must(t, envtest.ReadCRDFiles(&options))
	want := map[string]*definitions.Definition{}
	for _, d := range options.CRDs {
		want[d.Name] = d
	}
	list, err := definitions.Read(dir, single)
	must(t, err)
	got := map[string]*definitions.Definition{}
	for _, d := range list {
		got[d.Name] = d
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 2 {
		t.Errorf("%d definitions, -envtest +got:\n%s", len(got), diff)
	}
	if text := got["widgets.example.com"].Spec.Versions[0].Schema.OpenAPIV3Schema.Description; text != "LAST" {
		t.Errorf("of two definitions %q counts", text)
	}
}

func TestReadNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"missing":    filepath.Join(t.TempDir(), "missing"),
		"broken.yml": write(t, map[string]string{"broken.yml": "kind: [CustomResourceDefinition"}),
	} {
		if _, err := definitions.Read(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got the error %v", name, err)
		}
	}
}

// A definition that exists is replaced.
func TestInstall(t *testing.T) {
	t.Parallel()
	server := apiserver.New(apiserver.Options{})
	cluster, err := dynamic.NewForConfig(server.Config())
	must(t, err)
	for _, text := range []string{"FIRST", "SECOND"} {
		list, err := definitions.Read(write(t, map[string]string{"a.yaml": strings.ReplaceAll(widgets, "FIRST", text)}))
		must(t, err)
		must(t, definitions.Install(t.Context(), cluster, list))
		crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		obj, err := cluster.Resource(crds).Get(t.Context(), "widgets.example.com", metav1.GetOptions{})
		must(t, err)
		if content, err := obj.MarshalJSON(); err != nil || !strings.Contains(string(content), text) {
			t.Errorf("the definition does not say %s: %s, %v", text, content, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
