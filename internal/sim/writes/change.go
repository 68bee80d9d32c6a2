// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
)

// How much of a write is shown.
const (
	maxLines = 16
	maxValue = 100
)

// hidden stands for a value of a Secret.
const hidden = "<hidden>"

// changesPath reports whether the write has changed a field, or one below or above it.
func (w *write) changesPath(path string) bool {
	for _, c := range w.changes {
		before, after := flat(c.Old), flat(c.New)
		for p := range union(before, after) {
			if before[p] != after[p] && (strings.HasPrefix(p, path) || strings.HasPrefix(path, p)) {
				return true
			}
		}
	}
	return false
}

func (w *write) isDeletion() bool {
	return w.request.Verb == "delete" || w.request.Verb == "deletecollection"
}

// lines returns what the write has changed, or for a creation what it has asked for.
func (w *write) lines(names *strings.Replacer) []string {
	secret := cluster.IsSecret(w.request.Resource)
	if w.request.Verb == "create" {
		var body map[string]any
		if json.Unmarshal(w.request.Body, &body) != nil {
			return nil
		}
		return limited(difference(flat(nil), flat(body), secret), names)
	}
	if w.isDeletion() || w.code >= 300 {
		return nil
	}
	var lines []string
	for _, c := range w.changes {
		lines = append(lines, difference(flat(c.Old), flat(c.New), secret)...)
	}
	if len(w.changes) == 0 {
		return []string{"(no change)"}
	}
	return limited(lines, names)
}

// difference returns the fields that differ, a line each, ordered by path.
func difference(before, after map[string]string, secret bool) []string {
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(union(before, after))) {
		old, was := before[path]
		now, is := after[path]
		if was == is && old == now || serverSet(path) {
			continue
		}
		if secret && cluster.IsSecretData(path) {
			old, now = hidden, hidden
		}
		field := strings.TrimPrefix(path, ".")
		switch {
		case !was:
			lines = append(lines, fmt.Sprintf("+ %s: %s", field, short(now)))
		case !is:
			lines = append(lines, fmt.Sprintf("- %s: %s", field, short(old)))
		default:
			lines = append(lines, fmt.Sprintf("~ %s: %s -> %s", field, short(old), short(now)))
		}
	}
	return lines
}

// serverSet reports whether a field says nothing: the server sets it, or the request names it.
func serverSet(path string) bool {
	switch {
	case strings.HasPrefix(path, ".metadata.managedFields"):
		return true
	case strings.HasPrefix(path, ".metadata.ownerReferences"):
		return !strings.HasSuffix(path, ".kind") // the path has the name
	}
	switch path {
	case ".apiVersion", ".kind", ".metadata.name", ".metadata.namespace", ".metadata.generateName", ".metadata.resourceVersion",
		".metadata.uid", ".metadata.generation", ".metadata.creationTimestamp", ".metadata.selfLink":
		return true
	}
	return false
}

func limited(lines []string, names *strings.Replacer) []string {
	for i := range lines {
		lines[i] = names.Replace(lines[i])
	}
	if n := len(lines) - maxLines; n > 0 {
		lines = append(lines[:maxLines:maxLines], fmt.Sprintf("... %d more fields", n))
	}
	return lines
}

func short(text string) string {
	runes := []rune(strings.ReplaceAll(text, "\n", "\\n"))
	if len(runes) <= maxValue {
		return string(runes)
	}
	return string(runes[:maxValue-3]) + "..."
}

// flat returns the leaves of an object by their paths, as snapshots name them. Empty values are
// left out.
func flat(object map[string]any) map[string]string {
	leaves := map[string]string{}
	snapshot.Leaves(object, func(path string, leaf any) {
		switch leaf.(type) {
		case nil, map[string]any, []any:
		default:
			leaves[path] = snapshot.TextOf(leaf)
		}
	})
	return leaves
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
