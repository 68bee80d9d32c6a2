// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"slices"
	"strings"
	"testing"
)

// groups says which groups of packages one group uses: the folders of internal, the floors of the
// library, and the packages that run operators. Within a group, and between groups that use each
// other, the layers decide.
var groups = map[string][]string{
	"internal/cluster":    {}, // what is known of any cluster: kinds, rules, references, text of others
	"internal/language":   {"internal/cluster"},
	"internal/engine":     {"internal/cluster", "library"}, // what the floors share
	"internal/show":       {"internal/cluster", "internal/engine", "internal/language", "library"},
	"library":             {"internal/cluster", "internal/engine", "internal/show"},
	"internal/gobuild":    {}, // of the standard library alone
	"controlplane":        {"internal/cluster", "internal/gobuild"},
	"internal/sim":        {"controlplane", "internal/cluster", "internal/engine", "internal/gobuild", "internal/show", "library", "sim"},
	"sim":                 {"internal/cluster", "internal/engine", "internal/sim", "library"},
	"ctrlkittest":         {"controlplane", "internal/cluster", "internal/engine", "internal/sim", "library"},
	"internal/scaffold":   {},
	"internal/vet":        {},
	"internal/command":    {"controlplane", "internal/cluster", "internal/engine", "internal/language", "internal/scaffold", "internal/show", "internal/sim", "internal/vet", "library"},
	"internal/playground": {"internal/language", "internal/show"},
	"internal/tools":      {"controlplane", "internal/gobuild", "internal/sim", "internal/vet", "sim"}, // of this repository
	"cmd":                 {"internal/command", "internal/vet"},
}

// generated are packages that the generator has written, as it does for operators.
const generated = "internal/language/gen/golden"

// kits run tests of other packages, as tools do, and are in no program.
var kits = []string{"internal/command/commandtest", "internal/sim/plan/plantest"}

// Each group uses those that the table names, and the table names none that it does not use.
func TestGroups(t *testing.T) {
	inRoot(t)
	used := map[[2]string]bool{}
	for _, p := range ownPackages(t) {
		from := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if strings.HasPrefix(from, generated) {
			continue
		}
		uses, ok := groups[groupOf(from)]
		if !ok {
			t.Errorf("package %q is in no group: put it into one, or give a new one a line in groups_test.go and in docs/architecture.md", from)
		}
		for _, imported := range p.Imports {
			to, inside := strings.CutPrefix(imported, module)
			group := groupOf(strings.TrimPrefix(to, "/"))
			if !inside || group == groupOf(from) || group == "internal/tools" && slices.Contains(kits, from) {
				continue
			}
			used[[2]string{groupOf(from), group}] = true
			if !slices.Contains(uses, group) {
				t.Errorf("%q imports %q: %s uses %v only", from, imported, groupOf(from), uses)
			}
		}
	}
	for from, uses := range groups {
		for _, to := range uses {
			if !used[[2]string{from, to}] {
				t.Errorf("nothing of %s imports %s: remove it from the table", from, to)
			}
		}
	}
}

// groupOf returns the group of a folder.
func groupOf(dir string) string {
	first, rest, _ := strings.Cut(dir, "/")
	switch first {
	case "internal":
		second, _, _ := strings.Cut(rest, "/")
		return "internal/" + second
	case "sim", "controlplane", "ctrlkittest", "cmd":
		return first
	}
	return "library"
}
