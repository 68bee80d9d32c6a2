// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets/secretstest"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// Passwords of each class of characters, written in each form into a Secret, into what kubectl has
// last applied, into the environment of a Pod, into ConfigMaps and into an annotation of a control
// plane, are not in its recording.
func TestRecordingHasNoFormOfAValue(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := shared.ForTest(t)
	c := newVaultClient(t, plane)
	const ns = "vaults-forms"
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	data := map[string]string{}
	for n, canary := range secretstest.Canaries {
		data[fmt.Sprint("password-", n)] = canary
	}
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "main-token"}, StringData: data}
	applied, err := json.Marshal(token)
	must(t, err)
	token.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(applied)}
	must(t, c.Create(t.Context(), token))

	v := newVault(ns, "main")
	v.SetAnnotations(map[string]string{"note": "set to " + secretstest.Canaries[0]})
	must(t, unstructured.SetNestedField(v.Object, "main-token", "spec", "token"))
	must(t, c.Create(t.Context(), v))
	for _, obj := range inEachForm(ns) {
		obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(v, vaultKind)})
		must(t, c.Create(t.Context(), obj))
	}

	file := filepath.Join(t.TempDir(), "forms.yaml")
	_, said, err := execute(t, "", "record", "-o", file, "vault/main", "-n", ns, "--kubeconfig", plane.Kubeconfig(), "--endpoint", noEndpoint)
	must(t, err)
	text, err := os.ReadFile(file)
	must(t, err)
	checkNoForm(t, "the file", string(text))
	checkNoForm(t, "the output", said)
	r, err := recording.Read(file)
	must(t, err)
	kinds := map[string]int{}
	for _, obj := range r.Objects {
		kinds[obj.GetKind()]++
		for place, text := range stringsIn(obj.GetKind()+" "+obj.GetName(), obj.Object) {
			checkNoForm(t, place, text)
		}
	}
	if n := len(secretstest.Canaries); kinds["ConfigMap"] != n || kinds["Pod"] != 1 || kinds["Secret"] != 1 {
		t.Errorf("the recording has %v, want %d ConfigMaps, a Pod and a Secret", kinds, n)
	}
}

// inEachForm returns a ConfigMap for each canary, with a key for each form, and a Pod that has the
// forms in its environment.
func inEachForm(ns string) (list []client.Object) {
	container := corev1.Container{Name: "app", Image: "example.com/app:v1"}
	for n, canary := range secretstest.Canaries {
		data := map[string]string{}
		for f, name := range secretstest.Names() {
			key := fmt.Sprintf("form-%d", f)
			data[key] = "database:\n  password: " + secretstest.Forms[name](canary) + "\n"
			container.Env = append(container.Env, corev1.EnvVar{Name: strings.ToUpper(fmt.Sprintf("P%d_%d", n, f)), Value: "postgres://app:" + secretstest.Forms[name](canary) + "@db/app"})
		}
		list = append(list, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("settings-", n)}, Data: data})
	}
	off := false
	return append(list, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container}, AutomountServiceAccountToken: &off},
	})
}

func checkNoForm(t *testing.T, place, text string) {
	t.Helper()
	for _, canary := range secretstest.Canaries {
		for _, name := range secretstest.Names() {
			if strings.Contains(text, secretstest.Forms[name](canary)) {
				t.Errorf("%s has %q as %s", place, canary, name)
			}
		}
	}
}

// stringsIn returns the texts in a value, keys too, by their places.
func stringsIn(place string, value any) map[string]string {
	all := map[string]string{}
	var walk func(place string, value any)
	walk = func(place string, value any) {
		switch v := value.(type) {
		case string:
			all[place] = v
		case []any:
			for n, item := range v {
				walk(fmt.Sprint(place, "[", n, "]"), item)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				all[place+" key "+key] = key
				walk(place+"."+key, v[key])
			}
		}
	}
	walk(place, value)
	return all
}
