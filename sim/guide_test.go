// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/rings"
)

var block = regexp.MustCompile("(?s)```\\w+ from=(\\S+)\n(.*?)```")

// The guide shows the project in testdata/guide, and what its simulation prints.
func TestTheGuideIsTrue(t *testing.T) {
	rings.Test(t, "compiles a project")
	page, err := os.ReadFile("../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command("go", "test", "-count=1", "-vet=off", "./testdata/guide").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		t.Fatalf("the guide's simulation found nothing: %v\n%s", err, output)
	}
	blocks := block.FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 4 {
		t.Errorf("the guide shows %d pieces, want its code and its output", len(blocks))
	}
	for _, b := range blocks {
		source := string(output)
		if b[1] != "output" {
			data, err := os.ReadFile(filepath.Join("..", b[1]))
			if err != nil {
				t.Fatal(err)
			}
			source = string(data)
		}
		if !strings.Contains(trimmed(source), trimmed(b[2])) {
			t.Errorf("the guide shows what is not in %s:\n%s\nthere is:\n%s", b[1], b[2], source)
		}
	}
}

// trimmed is a text without what its lines begin and end with.
func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
