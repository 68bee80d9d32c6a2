// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// Hooks that are never called are an error if the type implements the actions of a manager.
func TestCheckHooks(t *testing.T) {
	const text = `package p

func (*one) Look()                                                                  {}
func (*one) BeforeActionRun(name string, ctx context.Context)                       {}
func (*one) AfterActionRun(action string, ctx context.Context, logger logr.Logger)  {}

func (two) Look()                                                                   {}
func (two) AfterActionRun(string, context.Context, logging.Logger)                  {}
func (two) BeforeActionRun(string, context.Context, logr.Logger) error              { return nil }

func (three) BeforeActionRun() {}
func (three) Other()           {}
`
	pkg := &model.Package{Documents: []*model.Document{{Managers: []*model.Manager{
		{Name: "A", Actions: []*model.Action{{Name: "Look"}}}, {Name: "B", Actions: []*model.Action{{Name: "Other"}, {Name: "More"}}}, {Name: "C"},
	}}}}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "a.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	const want = "a.go:4:13: BeforeActionRun is never called: write BeforeActionRun(action string, ctx context.Context, logger logr.Logger)\n" +
		"a.go:9:12: BeforeActionRun is never called: write BeforeActionRun(action string, ctx context.Context, logger logr.Logger)"
	if err := CheckHooks(pkg, fset, []*ast.File{file}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
