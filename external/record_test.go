// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// with returns an object with an intent.
func with(intent string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{UID: "uid", Annotations: map[string]string{IntentAnnotation: intent}}
}

var compareRecords = cmp.AllowUnexported(record{})

func TestRecord(t *testing.T) {
	for text, want := range map[string]record{
		"begun 2026-11-22T12:00:00Z":                   {step: begun, at: noon},
		"begun 2026-11-22T12:00:00Z by p1":             {step: begun, at: noon, process: "p1"},
		"begun 2026-11-22T12:00:00Z by p1 token uid-2": {step: begun, at: noon, process: "p1", token: "uid-2"},
		"created 2026-11-22T12:00:00Z token uid-2":     {step: created, at: noon, token: "uid-2"},
		"none": {step: nothing},
		" created  2026-11-22T12:00:00Z\ttoken  uid-2 ": {step: created, at: noon, token: "uid-2"},
	} {
		got, err := recordOf(with(text))
		if diff := cmp.Diff(want, got, compareRecords); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
		if again := strings.Join(strings.Fields(text), " "); got.String() != again {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	if got, err := recordOf(&metav1.ObjectMeta{}); got != (record{}) || got.String() != "" || err != nil {
		t.Errorf("without an annotation: %v, %v", got, err)
	}
}

func TestWrongRecordNamesTheRemedy(t *testing.T) {
	for _, text := range []string{
		"", "yes", "begun", "begun today", "begun 2026-11-22T12:00:00Z by", "by p1", "token t",
		"begun 2026-11-22T12:00:00Z created 2026-11-22T12:00:00Z", "ended 2026-11-22T12:00:00Z",
		"begun 2026-11-22T12:00:00.5Z", "begun 2026-11-22T12:00:00+01:00", "begun 2026-13-22T12:00:00Z",
	} {
		got, err := recordOf(with(text))
		if err == nil || got != (record{}) || !strings.Contains(err.Error(), "remove it and, if the resource exists, set "+IDAnnotation) {
			t.Errorf("%q: %v, error %v", text, got, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	for _, text := range []string{"begun 2026-11-22T12:00:00Z by p1 token uid-2", "created 2026-11-22T12:00:00Z", "begun 0000-01-01T00:00:00Z", "by by by by", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := recordOf(with(text))
		if err != nil {
			if r != (record{}) {
				t.Fatalf("%q: a record with an error", text)
			}
			return
		}
		again, err := recordOf(with(r.String()))
		if err != nil || again != r {
			t.Fatalf("%q: %v is read as %v, %v", text, r, again, err)
		}
	})
}

func TestTokens(t *testing.T) {
	for token, want := range map[string][2]string{
		"":        {"uid-1", "uid-2"},
		"uid-1":   {"uid-1", "uid-2"},
		"uid-9":   {"uid-9", "uid-10"},
		"other-4": {"uid-1", "uid-2"}, // of an object that was restored under another UID
		"written": {"uid-1", "uid-2"},
	} {
		r := record{token: token}
		if got := [2]string{r.tokenOf(with("")), r.nextToken(with(""))}; got != want {
			t.Errorf("for %q come %q, want %q", token, got, want)
		}
	}
}

func TestAnnotate(t *testing.T) {
	obj := &metav1.ObjectMeta{}
	setRecord(obj, record{})
	annotate(obj, IDAnnotation, "a")
	setRecord(obj, record{step: begun, at: noon})
	setRecord(obj, record{})
	if diff := cmp.Diff(map[string]string{IDAnnotation: "a"}, obj.Annotations); diff != "" {
		t.Error(diff)
	}
}
