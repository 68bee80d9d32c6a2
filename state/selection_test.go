// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func readerWith(objects ...client.Object) client.Reader {
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

func TestGet(t *testing.T) {
	here := configMap("ns", "here", map[string]string{"app": "a", "empty": ""})
	here.Data = map[string]string{"x": "1"}
	reader := readerWith(here)
	data := func(key string) Index[*corev1.ConfigMap] {
		return Index[*corev1.ConfigMap]{Name: "ctrlkit:.data." + key, Values: func(obj *corev1.ConfigMap) []string {
			if value, ok := obj.Data[key]; ok {
				return []string{value}
			}
			return nil
		}}
	}
	tests := map[string]struct {
		selection Selection
		want      string // the name of the object
		wantErr   string
	}{
		"there":            {selection: Selection{Namespace: "ns", Name: "here"}, want: "here"},
		"not there":        {selection: Selection{Namespace: "ns", Name: "gone"}},
		"elsewhere":        {selection: Selection{Namespace: "other", Name: "here"}},
		"label matches":    {selection: Selection{Namespace: "ns", Name: "here", Labels: map[string]string{"app": "a"}}, want: "here"},
		"label differs":    {selection: Selection{Namespace: "ns", Name: "here", Labels: map[string]string{"app": "b"}}, wantErr: `ns/here exists but does not satisfy the other selectors: label app is "a", not "b": change it`},
		"empty label":      {selection: Selection{Namespace: "ns", Name: "here", Labels: map[string]string{"empty": ""}}, want: "here"},
		"no empty label":   {selection: Selection{Namespace: "ns", Name: "here", Labels: map[string]string{"none": ""}}, wantErr: `label none is missing, not ""`},
		"gone with label":  {selection: Selection{Namespace: "ns", Name: "gone", Labels: map[string]string{"app": "b"}}},
		"field matches":    {selection: Selection{Namespace: "ns", Name: "here", Fields: map[string]string{"ctrlkit:.data.x": "1"}}, want: "here"},
		"field differs":    {selection: Selection{Namespace: "ns", Name: "here", Fields: map[string]string{"ctrlkit:.data.x": "2"}}, wantErr: `field .data.x is "1", not "2"`},
		"no field":         {selection: Selection{Namespace: "ns", Name: "here", Fields: map[string]string{"ctrlkit:.data.y": "2"}}, wantErr: `field .data.y is not set, not "2"`},
		"no index":         {selection: Selection{Namespace: "ns", Name: "here", Fields: map[string]string{"ctrlkit:.data.z": "2"}}, wantErr: `the index ctrlkit:.data.z was not given`},
		"impossible label": {selection: Selection{Namespace: "ns", Name: "here", Labels: map[string]string{"app": "a b"}}, wantErr: `labels/app="a b"`},
		"no name":          {selection: Selection{Namespace: "ns"}, wantErr: "the name of the object is empty"},
		"impossible name":  {selection: Selection{Namespace: "ns", Name: "a/b"}, wantErr: `"a/b" is not a name`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Get(t.Context(), reader, test.selection, &corev1.ConfigMap{}, data("x"), data("y"))
			wantError(t, err, test.wantErr)
			mismatch := &MismatchError{}
			items, listErr := GetList(t.Context(), reader, test.selection, &corev1.ConfigMap{}, data("x"), data("y"))
			switch isMismatch := errors.As(err, &mismatch); {
			case isMismatch && (len(items) > 0 || listErr != nil):
				t.Errorf("GetList of what does not match = %v, %v", items, listErr)
			case !isMismatch && ((err == nil) != (listErr == nil) || (len(items) == 1) != (got != nil)):
				t.Errorf("GetList = %v, %v, but Get = %v, %v", items, listErr, got, err)
			}
			if test.want == "" && got != nil || test.want != "" && (got == nil || got.Name != test.want) {
				t.Errorf("Get = %v, want %q", got, test.want)
			}
		})
	}
}

func TestListRefusesLabelsThatNoObjectCanHave(t *testing.T) {
	reader := readerWith()
	for _, labels := range []map[string]string{
		{"app": "käse"}, {"app": strings.Repeat("x", 64)}, {"app": "-x"}, {"a b": "x"}, {"": "x"},
	} {
		err := Selection{Labels: labels}.List(t.Context(), reader, &corev1.ConfigMapList{})
		wantError(t, err, "that a")
	}
}

func TestListByAnIndexThatIsMissing(t *testing.T) {
	err := Selection{Fields: map[string]string{"ctrlkit:.data.x": "1"}}.List(t.Context(), readerWith(), &corev1.ConfigMapList{})
	wantError(t, err, "listing by the index ctrlkit:.data.x, which a manager's cache has after the generated Index function was called")
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error: %v, want one with %q", err, want)
	}
}

// TestKey checks that a key is the same exactly when the selection is. The alphabet is small, so
// that equal ones are drawn as well.
func TestKey(t *testing.T) {
	word := rapid.StringOfN(rapid.SampledFrom([]rune(`a" 0\`)), 0, 2, -1)
	selections := rapid.Custom(func(t *rapid.T) Selection {
		return Selection{
			Namespace: word.Draw(t, "namespace"),
			Name:      word.Draw(t, "name"),
			Labels:    rapid.MapOfN(word, word, 0, 2).Draw(t, "labels"),
			Fields:    rapid.MapOfN(word, word, 0, 2).Draw(t, "fields"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a := selections.Draw(t, "a")
		b := rapid.OneOf(selections, rapid.Just(a)).Draw(t, "b")
		equal := a.Namespace == b.Namespace && a.Name == b.Name && equalMaps(a.Labels, b.Labels) && equalMaps(a.Fields, b.Fields)
		same(t, "equal keys", equal, a.Key() == b.Key())
	})
}

func equalMaps(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}

func TestNamespaceOf(t *testing.T) {
	if got, err := NamespaceOf(configMap("ns", "target", nil)); got != "ns" || err != nil {
		t.Errorf("NamespaceOf = %q, %v", got, err)
	}
	got, err := NamespaceOf(configMap("", "target", nil))
	wantError(t, err, "the target target has no namespace to read from: write namespace=NAME")
	same(t, "namespace", "", got)
}
