// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what tests make with files in their testdata.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

// Compare fails the test if a text is not that of a file of testdata.
func Compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("%s was rewritten", file)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// Stories plays the stories in a file of testdata again, and compares what they show. A story is
// some lines up to an empty one; what a line shows is indented below it. play gets a story without
// what it shows, and returns it as [Play] does.
func Stories(t *testing.T, name string, play func(story []string) []string) {
	t.Helper()
	var played []string
	for _, story := range Read(t, name) {
		played = append(played, strings.Join(play(story), "\n"))
	}
	Compare(t, name, strings.Join(played, "\n\n")+"\n")
}

// Read returns the stories in a file of testdata, without what they show.
func Read(t *testing.T, name string) (stories [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for story := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		lines := slices.DeleteFunc(strings.Split(story, "\n"), func(line string) bool { return strings.HasPrefix(line, " ") })
		stories = append(stories, lines)
	}
	return stories
}

// Play does what the lines of a story say, but for comments, and returns them with what they show.
func Play(story []string, do func(line string) []string) (played []string) {
	for _, line := range story {
		played = append(played, line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, shown := range do(line) {
			played = append(played, "    "+shown)
		}
	}
	return played
}
