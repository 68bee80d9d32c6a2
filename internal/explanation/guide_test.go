// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var block = regexp.MustCompile("(?s)```\\w+ from=(\\S+)\n(.*?)\n```")

// The quotations in the guide are in the golden texts and in the files that it names. Between two
// sections others may be left out.
func TestGuideQuotesGoldenTexts(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := block.FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 11 {
		t.Errorf("the guide shows %d pieces: is the expression right?", len(blocks))
	}
	for _, b := range blocks {
		source, err := os.ReadFile(filepath.Join("..", "..", b[1]))
		if err != nil {
			t.Fatal(err)
		}
		rest := string(source)
		for _, section := range strings.Split(b[2], "\n\n") {
			_, after, found := strings.Cut(rest, section)
			if !found {
				t.Errorf("the guide quotes what is not in %s, or not in this order:\n%s", b[1], section)
				break
			}
			rest = after
		}
	}
}
