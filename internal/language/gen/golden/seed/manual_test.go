// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package seed_test

import (
	"os"
	"strings"
	"testing"
)

// TestManual compares the code in docs/language.md with the code below this directory, which
// is compiled and run.
func TestManual(t *testing.T) {
	read := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	code := read("testdata/controller/controller.go") + read("testdata/controller/setup.go") + read("seed_test.go") + read("manager/impl.go")
	manual := read("../../../../../docs/language.md")
	blocks := strings.Split(manual, "```go\n")[1:]
	compared := 0
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if strings.HasPrefix(block, "func ") || strings.HasPrefix(block, "type ") {
			compared++
			if !strings.Contains(code, strings.TrimSuffix(block, "\n")) {
				t.Errorf("the manual has code that is not in this directory:\n%s", block)
			}
		}
	}
	if compared != 4 {
		t.Errorf("%d declarations were found in the manual, want 4", compared)
	}
}
