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

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var block = regexp.MustCompile("(?s)```\\w+ from=(\\S+)\n(.*?)```")

// The guide shows the project in testdata/guide, which compiles.
func TestTheGuideShowsAProject(t *testing.T) {
	rings.Test(t, "compiles a project")
	rings.Reads(t, "..")
	if output, err := exec.Command("go", "build", "./testdata/guide").CombinedOutput(); err != nil {
		t.Fatalf("go vet: %v\n%s", err, output)
	}
	shown := 0
	for _, b := range blocks(t) {
		if b[1] == "output" {
			continue
		}
		source, err := os.ReadFile(filepath.Join("..", b[1]))
		if err != nil {
			t.Fatal(err)
		}
		shows(t, b, string(source))
		shown++
	}
	if shown < 2 {
		t.Errorf("the guide shows %d pieces of code", shown)
	}
}

// The guide shows what the simulation of that project prints.
func TestTheGuideIsTrue(t *testing.T) {
	rings.Explore(t, "simulates a project, with all plans")
	rings.Reads(t, "..")
	output, err := exec.Command("go", "test", "-count=1", "-vet=off", "./testdata/guide").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		t.Fatalf("the guide's simulation found nothing: %v\n%s", err, output)
	}
	for _, b := range blocks(t) {
		if b[1] == "output" {
			shows(t, b, string(output))
		}
	}
	front, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`fails after (\d+) plans`).FindSubmatch(front)
	if said == nil || !regexp.MustCompile(`\bcontroller_sim_test\.go:\d+: `+string(said[1])+" plans:").Match(output) {
		t.Errorf("README.md says %q; the simulation has printed\n%s", said, output)
	}
}

// blocks returns the pieces of the guide: each has, after its whole text, where it is from, and what
// it shows.
func blocks(t *testing.T) [][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	return block.FindAllStringSubmatch(string(page), -1)
}

// shows checks that a block is a part of its source.
func shows(t *testing.T, block []string, source string) {
	t.Helper()
	if !strings.Contains(trimmed(source), trimmed(block[2])) {
		t.Errorf("the guide shows what is not in %s:\n%s\nthere is:\n%s", block[1], block[2], source)
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
