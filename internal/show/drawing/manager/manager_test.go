// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
)

// Actions of a large document that read the same are together, four at most; those of a small one are
// not.
func TestGrouped(t *testing.T) {
	action := func(name string, reads ...string) *ast.Action {
		a := &ast.Action{Name: ast.Word{Text: name}}
		for _, state := range reads {
			a.Args = append(a.Args, &ast.Arg{Name: ast.Word{Text: state}})
		}
		return a
	}
	actions := []*ast.Action{
		action("SyncA", "a"), action("SyncBoth", "a", "b"), action("WaitA", "a"), action("Start"), action("WaitBoth", "b", "a"),
		action("A3", "a"), action("A4", "a"), action("A5", "a"), action("A6", "a"), action("Stop"),
	}
	names := func(large bool) (all [][]string) {
		for _, group := range grouped(actions, large) {
			var names []string
			for _, a := range group {
				names = append(names, a.Name.Text)
			}
			all = append(all, names)
		}
		return all
	}
	want := [][]string{{"SyncA", "WaitA", "A3", "A4"}, {"SyncBoth", "WaitBoth"}, {"Start", "Stop"}, {"A5", "A6"}}
	if diff := cmp.Diff(want, names(true)); diff != "" {
		t.Errorf("the groups (-want +got):\n%s", diff)
	}
	if got := names(false); len(got) != len(actions) {
		t.Errorf("a small document has the groups %v", got)
	}
}
