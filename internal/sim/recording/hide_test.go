// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
)

var recorded = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// object returns an object with more fields.
func object(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name, "namespace": "shop", "uid": "uid-of-" + name, "resourceVersion": "7"}
	content := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for field, value := range fields {
		if field == "annotations" {
			metadata[field] = value
			continue
		}
		content[field] = value
	}
	return &unstructured.Unstructured{Object: content}
}

// secret returns a Secret with data, in the order key, value.
func secret(name string, data ...string) *unstructured.Unstructured {
	entries := map[string]any{}
	for pair := range slices.Chunk(data, 2) {
		entries[pair[0]] = base64.StdEncoding.EncodeToString([]byte(pair[1]))
	}
	return object("v1", "Secret", name, map[string]any{"data": entries})
}

func dataOf(t *testing.T, obj *unstructured.Unstructured, key string) string {
	t.Helper()
	text, _, _ := unstructured.NestedString(obj.Object, "data", key)
	decoded, err := base64.StdEncoding.DecodeString(text)
	must(t, err)
	return string(decoded)
}

func hide(objects ...*unstructured.Unstructured) *recording.Recording {
	r := &recording.Recording{Head: recording.Head{Recorded: recorded}, Objects: objects}
	r.Hide(nil)
	return r
}

func textOf(t *testing.T, r *recording.Recording) string {
	t.Helper()
	var b strings.Builder
	must(t, r.Write(&b))
	return b.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const canary = `p"w/d?canary\7261 ü`

// No form of a value is in the file, wherever it was.
func TestNoValueIsLeft(t *testing.T) {
	inJSON, err := json.Marshal(map[string]any{"password": canary})
	must(t, err)
	b64 := base64.StdEncoding.EncodeToString([]byte(canary))
	places := map[string]any{
		"plain": canary, "in a text": "password=" + canary + "!", "base64": b64, "base64 in a text": "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+canary)),
		"raw base64": base64.RawURLEncoding.EncodeToString([]byte(canary)), "base64 beside letters": "xx" + b64, "JSON": string(inJSON), "quoted": fmt.Sprintf("%q", canary),
		"URL": "https://user:" + url.QueryEscape(canary) + "@host", "hex": hex.EncodeToString([]byte(canary)), "twice": base64.StdEncoding.EncodeToString([]byte(b64)),
		"list": []any{"a", canary}, "number": int64(8812345), "key": map[string]any{canary: "x"},
	}
	const former, elsewhere, trimmed = "former-canary-91", "elsewhere-canary-5", "trimmed-canary"
	s := secret("db", "password", canary, "pin", "8812345", "file", trimmed+"\n")
	s.SetAnnotations(map[string]string{
		corev1.LastAppliedConfigAnnotation: `{"kind":"Secret","data":{"password":"` + base64.StdEncoding.EncodeToString([]byte(former)) + `"},"stringData":{"a":"` + former + `2"}}`,
		"note":                             "was " + former,
	})
	r := &recording.Recording{
		Head:    recording.Head{Recorded: recorded, Unread: []string{"pods: forbidden to " + canary}},
		Reports: []map[string]any{{"error": "login with " + canary + " failed"}},
		Objects: []*unstructured.Unstructured{s, object("v1", "ConfigMap", "copy", map[string]any{
			"spec": places, "annotations": map[string]any{"a": canary, "b": elsewhere, "c": trimmed},
		})},
	}
	r.Hide([]*unstructured.Unstructured{secret("other", "a", elsewhere)})
	text := textOf(t, r)
	for name, part := range map[string]string{
		"the value": canary, "its middle": "canary", "its base64": b64[:len(b64)-2], "the user and it": base64.StdEncoding.EncodeToString([]byte("user:" + canary))[8:],
		"escaped": url.QueryEscape(canary), "hex": hex.EncodeToString([]byte(canary)), "the number": "8812345", "twice": base64.StdEncoding.EncodeToString([]byte(b64)),
		"the former one": former, "the former one in base64": base64.StdEncoding.EncodeToString([]byte(former))[:16],
	} {
		if strings.Contains(text, part) {
			t.Errorf("%s is in the file:\n%s", name, text)
		}
	}
	if len(r.Left) > 0 {
		t.Errorf("values are said to be left: %v", r.Left)
	}
}

// What was equal is equal, what was not is not, and lengths stay. Numbers stay numbers.
func TestStandInsKeepEqualityAndLength(t *testing.T) {
	a := secret("a", "x", "correct horse", "y", "correct horse", "z", "correct house", "short", "ab", "pin", "123456", "empty", "", "line", "correct horse\n")
	b := secret("b", "x", "correct horse")
	copied := object("v1", "ConfigMap", "copy", map[string]any{"data": map[string]any{"url": "db://correct horse@host", "other": "ab"}})
	hide(a, b, copied)
	x := dataOf(t, a, "x")
	for _, other := range []string{dataOf(t, a, "y"), dataOf(t, b, "x"), strings.TrimSuffix(dataOf(t, a, "line"), "\n")} {
		if other != x {
			t.Errorf("equal values have the stand-ins %q and %q", x, other)
		}
	}
	if z := dataOf(t, a, "z"); z == x || len(z) != len("correct house") || x == "correct horse" {
		t.Errorf("stand-ins are %q and %q", x, z)
	}
	if pin := dataOf(t, a, "pin"); len(pin) != 6 || strings.Trim(pin, "0123456789") != "" || pin == "123456" {
		t.Errorf("the stand-in of a number is %q", pin)
	}
	if short := dataOf(t, a, "short"); short == "ab" || len(short) != 2 || dataOf(t, a, "empty") != "" {
		t.Errorf("the stand-in of a short value is %q", short)
	}
	want := map[string]any{"url": "db://" + x + "@host", "other": "ab"}
	if diff := cmp.Diff(want, copied.Object["data"]); diff != "" {
		t.Errorf("elsewhere, -want +got:\n%s", diff)
	}
}

// The stand-ins of two files have nothing to do with each other: no one can guess from a file.
func TestStandInsAreOfOneFile(t *testing.T) {
	a, b := secret("a", "x", "correct horse"), secret("a", "x", "correct horse")
	hide(a)
	hide(b)
	if dataOf(t, a, "x") == dataOf(t, b, "x") {
		t.Error("two files have the same stand-in")
	}
}

// A recording without such a value stays as it is: names, kinds and what is alike are no values.
func TestHideLeavesTheRestAlone(t *testing.T) {
	other := object("apps/v1", "Deployment", "orders", map[string]any{"spec": map[string]any{
		"image": "registry.example.com/orders:1", "password": "x", "from": "orders", "count": int64(3), "token": "aGVsbG8gd29ybGQ=", "on": true, "ratio": 0.5,
	}})
	want := other.DeepCopy()
	r := hide(secret("db", "namespace", "shop", "database", "orders", "kind", "Deployment", "b", "x", "field", "password"), other)
	if diff := cmp.Diff(want.Object, other.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// It is said of each value that is left, and not which one it is.
	if want := []string{"Secret shop/db, key database", "Secret shop/db, key field", "Secret shop/db, key kind"}; !slices.Equal(want, r.Left) {
		t.Errorf("left: %v", r.Left)
	}
}

// What is written is what is read.
func TestWriteAndRead(t *testing.T) {
	subject := object("example.com/v1", "Database", "db", map[string]any{"spec": map[string]any{"size": int64(1) << 40, "text": "a\n---\nb", "ratio": 1.5}})
	r := &recording.Recording{
		Head:    recording.Head{Recorded: recorded, Subjects: []recording.Subject{recording.SubjectOf(subject)}, Unread: []string{"pods: forbidden"}, Left: []string{"x"}},
		Reports: []map[string]any{{"controllers": []any{map[string]any{"name": "database", "failures": int64(3)}}}},
		Objects: []*unstructured.Unstructured{object("v1", "ConfigMap", "a", nil), subject},
	}
	file := filepath.Join(t.TempDir(), "x.yaml")
	must(t, os.WriteFile(file, []byte(textOf(t, r)), 0o600))
	got, err := recording.Read(file)
	must(t, err)
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
	if got.Objects[0].GetKind() != "Database" {
		t.Error("the subject does not come first")
	}
}

func TestReadNamesWhatIsWrong(t *testing.T) {
	head := "apiVersion: recording.ctrlkit.dev/v1\nkind: Recording\nrecorded: 2026-03-04T05:06:07Z\n"
	for text, want := range map[string]string{
		"":                                      "is empty",
		"apiVersion: v1\nkind: Pod\n":           "document 1: this is no recording",
		strings.Replace(head, "v1", "v9", 1):    "the recording has the version recording.ctrlkit.dev/v9",
		head[:strings.Index(head, "recorded:")]: "recorded is missing",
		head + "---\nkind: [":                   "document 2",
		head + "---\nkind: Pod\n":               "document 2: apiVersion, kind or metadata.name is missing",
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := recording.Read(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
