// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

// storyStart is the time 0s of the stories.
var storyStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A story is an archive of changes, each a file named by its time and what happens ("0.5s put", "3s
// delete", "0s initial", "2s event") with an object in YAML, and of what is to be seen: "plain",
// the lines in a pipe, and "tree 80x24", the picture at the end on a terminal of that size.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			must(t, err)
			differs := false
			teller := newStoryteller()
			for i, section := range archive.Files {
				got, isGolden := teller.play(t, section)
				if !isGolden {
					continue
				}
				if diff := cmp.Diff(string(section.Data), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", section.Name, diff)
					archive.Files[i].Data, differs = []byte(got), true
				}
			}
			if differs && *update {
				must(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			}
		})
	}
}

type storyteller struct {
	world *World
	plain bytes.Buffer
	now   time.Time
}

func newStoryteller() *storyteller {
	return &storyteller{world: NewWorld(schema.GroupKind{Group: "demo.dev", Kind: "CronJob"}, schema.GroupKind{Group: "demo.dev", Kind: "Database"})}
}

// play plays a change, or returns what is to be compared with the section.
func (s *storyteller) play(t *testing.T, section txtar.File) (got string, isGolden bool) {
	t.Helper()
	first, second, _ := strings.Cut(section.Name, " ")
	switch first {
	case "plain":
		return s.plain.String(), true
	case "tree":
		view := View{Now: s.now, Title: "title", Hint: "nothing yet"}
		if _, err := fmt.Sscanf(second, "%dx%d", &view.Width, &view.Height); err != nil {
			t.Fatalf("section %q: %v", section.Name, err)
		}
		return strings.Join(view.Lines(s.world), "\n") + "\n", true
	}
	after, err := time.ParseDuration(first)
	if err != nil {
		t.Fatalf("section %q: %v", section.Name, err)
	}
	s.now = storyStart.Add(after)
	if second == "wait" {
		return "", false
	}
	for _, change := range storyChanges(t, section.Data, second) {
		for _, notice := range s.world.Apply(change) {
			must(t, (Plain{Writer: &s.plain, Start: storyStart}).Print(notice, s.now))
		}
	}
	return "", false
}

// storyChanges reads the objects of a section, separated as documents are.
func storyChanges(t *testing.T, data []byte, how string) []Change {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	must(t, os.WriteFile(file, data, 0o600))
	manifests, err := ReadManifests(file)
	must(t, err)
	columns := []Column{{Name: "Last Schedule", Path: ".status.lastScheduleTime"}, {Name: "Active", Path: ".status.active"}}
	var changes []Change
	for _, manifest := range manifests {
		if how == "event" {
			change, ok := eventChange(manifest.Object)
			if !ok {
				t.Fatalf("no event: %v", manifest.Object)
			}
			changes = append(changes, change)
			continue
		}
		changes = append(changes, storyObject(t, manifest.Object, how, columns))
	}
	return changes
}

func storyObject(t *testing.T, u *unstructured.Unstructured, how string, columns []Column) Change {
	t.Helper()
	change := Change{Deleted: how == "delete", Initial: how == "initial"}
	if u.GroupVersionKind().Group != "demo.dev" || u.GetKind() != "CronJob" {
		columns = nil
	}
	change.Object = newObject(u, columns)
	return change
}
