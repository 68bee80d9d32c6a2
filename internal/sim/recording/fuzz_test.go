// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
)

// A file is refused with its name, or what was read is written and read again as it is, and its
// objects can be asked for.
func FuzzRead(f *testing.F) {
	head := "apiVersion: recording.ctrlkit.dev/v1\nkind: Recording\nrecorded: \"2026-03-04T04:06:07Z\"\n"
	for _, content := range []string{
		"", "---", head, head + "subjects: [{apiVersion: v1, kind: ConfigMap, namespace: a, name: b}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: a}\ndata: {x: \"a\\e[31mb\\r\\u202e\"}\n",
		head + "---\napiVersion: recording.ctrlkit.dev/v1\nkind: Report\nreport: {a: [1, 2.5, null]}\n", head + "---\n[1]\n", head + "---\na: &a [*a]\n",
		head + "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x, labels: {a: b}}\nspec: {group: 3}\n",
		head + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: x, deletionTimestamp: 3, finalizers: a}\nstatus: {conditions: [1, {type: 3}]}\n",
		head + "unread: [\"a\\tb\\u0007\"]\n---\napiVersion: v1\nkind: X\nmetadata: 3\n", "apiVersion: recording.ctrlkit.dev/v9\nkind: Recording\n",
	} {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content string) {
		file := filepath.Join(t.TempDir(), "a.yaml")
		write(t, file, content)
		r, err := recording.Read(file)
		if err != nil {
			if !strings.HasPrefix(err.Error(), file) {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		_, _ = r.Definitions()
		for _, obj := range r.Objects {
			if r.Find(recording.SubjectOf(obj)) == nil {
				t.Errorf("%s is not found", recording.SubjectOf(obj))
			}
			if said := recording.StateOf(obj).String(); said != printable.Line(said) {
				t.Errorf("the state %q is not printable", said)
			}
		}
		var first, second bytes.Buffer
		if err := r.Write(&first); err != nil {
			t.Fatal(err)
		}
		write(t, file, first.String())
		again, err := recording.Read(file)
		if err != nil {
			t.Fatalf("its own file: %v\n%s", err, &first)
		}
		if err := again.Write(&second); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() || !reflect.DeepEqual(again.Reports, r.Reports) {
			t.Errorf("got\n%s\nafter\n%s", &second, &first)
		}
	})
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
