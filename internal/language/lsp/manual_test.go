// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the table of selectors in the manual, then fail")

// The table of selectors in the manual has what an editor shows of them.
func TestManual(t *testing.T) {
	const manual, begin = "../../../docs/language.md", "<!-- selectors:"
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(text, []byte(begin))
	if !ok {
		t.Fatalf("%s has no line that begins with %s", manual, begin)
	}
	comment, rest, _ := bytes.Cut(rest, []byte("\n"))
	got, after, _ := bytes.Cut(rest, []byte("\n\n"))
	written := map[string]string{
		"name": "name=VALUE", "namespace": "namespace=VALUE", "owned": "owned", "labels": "labels/KEY=VALUE", "annotations": "annotations/KEY=VALUE", "fields": "fields/PATH=VALUE",
		"kind": "kind=VALUE", "group": "group=VALUE",
	}
	var want strings.Builder
	want.WriteString("| selector | selects |\n|---|---|")
	for _, family := range []string{"name", "labels", "annotations", "fields", "namespace", "kind", "group", "owned"} {
		anchor := strings.ToLower(strings.NewReplacer("=", "", "/", "").Replace(written[family]))
		if family == "kind" || family == "group" {
			anchor = "kindvalue-groupvalue" // they have one heading
		}
		fmt.Fprintf(&want, "\n| [`%s`](#%s) | %s |", written[family], anchor, selectorDocs[family])
	}
	if len(written) != len(selectorDocs) {
		t.Errorf("the editor describes %d families of selectors, the table %d", len(selectorDocs), len(written))
	}
	if diff := cmp.Diff(want.String(), string(got)); diff == "" {
		return
	} else if t.Errorf("%s (-want +got):\n%s", manual, diff); !*update {
		return
	}
	all := bytes.Join([][]byte{before, []byte(begin), comment, []byte("\n" + want.String()), []byte("\n\n"), after}, nil)
	if err := os.WriteFile(manual, all, 0o644); err != nil {
		t.Fatal(err)
	}
}
