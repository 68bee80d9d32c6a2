// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
	"github.com/ctrlkit/ctrlkit/internal/language/gen"
)

func newGenerateCommand() *cobra.Command {
	g := &generator{loader: check.NewCache(check.GoLoader{})}
	cmd := &cobra.Command{
		Use:   "generate [FILE.ctrlkit | DIRECTORY | DIRECTORY/...]...",
		Short: "Write Go for documents",
		Long: `Generate checks documents and writes Go for them: zz_generated.NAME.go beside NAME.ctrlkit.

The default is the current directory. A directory stands for all of its documents, and DIRECTORY/... also for all
directories below it, except those named testdata or vendor and those whose names begin with a dot or an underscore.
Files that are up to date are not written. Generated files whose document no longer exists are removed, unless single
documents are named. A document may also end with .cm, as in the RFC: zz_generated.NAME.cm.go is written for it.

With --skeleton, generate also writes a start for your own code: NAME_actions.go, in which each action returns an error,
and NAME_actions_test.go, which runs each action once. Existing files are not changed.

Nothing is written for a directory if one of its documents has a mistake.`,
		Example: `  ctrlkit generate                       the documents of this directory
  ctrlkit generate ./...                 all documents of this project
  ctrlkit generate api/cronjob.ctrlkit   one document
  ctrlkit generate --skeleton            also a skeleton of the actions, with a test
  ctrlkit generate --check ./...         in CI: write nothing, print what would change, and fail if anything would`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if g.check && g.skeleton {
				return usageError(errors.New("--check and --skeleton exclude each other: the one writes nothing"))
			}
			g.out, g.problems = cmd.OutOrStdout(), cmd.ErrOrStderr()
			defer endOnInterrupt(cmd.Context())()
			return g.run(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&g.check, "check", false, "write nothing; print what would change as a diff, and end with exit code 1 if anything would")
	cmd.Flags().BoolVar(&g.skeleton, "skeleton", false, "also write NAME_actions.go and NAME_actions_test.go, unless they exist")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{strings.TrimPrefix(check.Extension, "."), strings.TrimPrefix(check.OldExtension, ".")}, cobra.ShellCompDirectiveFilterFileExt
	}
	cmd.AddCommand(newFinalizerPolicyCommand())
	return cmd
}

// A generator is one run of the command.
type generator struct {
	check         bool
	skeleton      bool
	loader        check.Loader
	out, problems io.Writer

	upToDate int  // files that needed no change
	changed  int  // files that were written or removed, or would have been
	found    bool // whether there were mistakes, or with check, changes
}

// run generates the files of all directories. Mistakes in one do not stop it.
func (g *generator) run(ctx context.Context, args []string) error {
	targets, err := targetsOf(args)
	if err != nil {
		return usageError(err)
	}
	for _, target := range targets {
		if err := g.directory(ctx, target); err != nil {
			return err
		}
	}
	switch {
	case g.found:
		return problemError(nil)
	case g.changed == 0 && styleFor(g.out) == diag.Color:
		fmt.Fprintf(g.out, "nothing to do: %s up to date\n", count(g.upToDate, "file"))
	}
	return nil
}

// A target is a directory and the documents in it that are meant: all if none is named.
type target struct {
	dir   string
	named []string // base names
	// swept is true for directories that DIRECTORY/... found, which need not have documents.
	swept bool
}

// targetsOf resolves the arguments of the command to directories, each of them once.
func targetsOf(args []string) ([]target, error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	var targets []target
	add := func(dir, file string, swept bool) {
		dir = filepath.Clean(dir)
		i := slices.IndexFunc(targets, func(t target) bool { return t.dir == dir })
		switch {
		case i < 0 && file == "":
			targets = append(targets, target{dir: dir, swept: swept})
		case i < 0:
			targets = append(targets, target{dir: dir, named: []string{file}})
		case file == "":
			targets[i].named = nil
		case targets[i].named != nil:
			targets[i].named = append(targets[i].named, file)
		}
	}
	for _, arg := range args {
		if root, ok := strings.CutSuffix(filepath.ToSlash(arg), "/..."); ok || arg == "..." {
			if arg == "..." {
				root = "."
			}
			if err := sweep(filepath.FromSlash(root), func(dir string) { add(dir, "", true) }); err != nil {
				return nil, err
			}
			continue
		}
		info, err := os.Stat(arg)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: no such file or directory", arg)
		case err != nil:
			return nil, err
		case info.IsDir():
			add(arg, "", false)
		case check.IsDocument(arg):
			add(filepath.Dir(arg), filepath.Base(arg), false)
		default:
			return nil, fmt.Errorf("%s is neither a directory nor a document: the names of documents end with %s, or with %s as in the RFC", arg, check.Extension, check.OldExtension)
		}
	}
	return targets, nil
}

// sweep calls visit for root and the directories below it that the go command visits for ./... .
func sweep(root string, visit func(dir string)) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		if path != root && isSkipped(entry.Name()) {
			return fs.SkipDir
		}
		visit(path)
		return nil
	})
}

// directory brings the generated files of a directory up to date or, with --check, prints how they
// differ. An error ends the command.
func (g *generator) directory(ctx context.Context, t target) error {
	present, err := generatedIn(t.dir)
	if err != nil {
		return err
	}
	files, skeletons, err := g.generate(ctx, t)
	switch {
	case errors.Is(err, check.ErrNoDocuments) && (t.swept || len(present) > 0):
		files = nil
	case errors.Is(err, errMistakes):
		g.found = true
		return nil
	case errors.Is(err, check.ErrNoDocuments):
		return usageError(err)
	case err != nil:
		return err
	}
	for _, file := range files {
		before := present[file.Name]
		delete(present, file.Name)
		if len(t.named) > 0 && !slices.Contains(t.named, file.Source) {
			continue
		}
		if err := g.put(filepath.Join(t.dir, file.Name), before, file.Content); err != nil {
			return err
		}
	}
	for _, file := range skeletons {
		if len(t.named) > 0 && !slices.Contains(t.named, file.Source) {
			continue
		}
		if err := g.writeOnce(filepath.Join(t.dir, file.Name), file.Content); err != nil {
			return err
		}
	}
	if len(t.named) > 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if err := g.remove(filepath.Join(t.dir, name), present[name]); err != nil {
			return err
		}
	}
	return nil
}

// errMistakes means that there are mistakes in documents, which have been printed.
var errMistakes = errors.New("mistakes in documents")

// generate returns the files of a directory, whose documents become one package. skeletons is empty
// without --skeleton.
func (g *generator) generate(ctx context.Context, t target) (files, skeletons []gen.File, err error) {
	in, err := check.Read(t.dir)
	if err != nil {
		return nil, nil, err
	}
	in.Dir, _ = check.ModuleRoot(t.dir)
	pkg, list, err := check.Check(ctx, in, g.loader)
	if err != nil {
		return nil, nil, fmt.Errorf("checking the documents in %s: %w", t.dir, err)
	}
	if err := g.print(in, list); err != nil {
		return nil, nil, err
	}
	if list.HasErrors() {
		return nil, nil, errMistakes
	}
	if err := checkHooks(pkg, t.dir); err != nil {
		return nil, nil, problemError(err)
	}
	files, err = gen.Generate(pkg)
	if err == nil && g.skeleton {
		skeletons, err = gen.Skeletons(pkg)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("generating the Go of %s: %w", t.dir, err)
	}
	return files, skeletons, nil
}

// checkHooks returns an error for hooks in the Go files of the directory that are never called. Files
// that cannot be read are left to the compiler.
func checkHooks(pkg *model.Package, dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return fmt.Errorf("looking for Go files: %w", err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution); err == nil {
			files = append(files, file)
		}
	}
	return gen.CheckHooks(pkg, fset, files)
}

// print prints diagnostics for people.
func (g *generator) print(in check.Input, list diag.List) error {
	printer := diag.Printer{Sources: map[string][]byte{}, Style: styleFor(g.problems)}
	for _, source := range in.Sources {
		printer.Sources[source.File] = source.Text
	}
	return printer.Print(g.problems, list.Problems())
}

// put writes a generated file unless it is up to date. before is its present content, and nil if
// there is no generated file: put returns an error if a file of that name exists nevertheless.
func (g *generator) put(path string, before, content []byte) error {
	if before != nil && bytes.Equal(before, content) {
		g.upToDate++
		return nil
	}
	if _, err := os.Lstat(path); err == nil && before == nil {
		return fmt.Errorf("%s was not generated by ctrlkit and is not overwritten: rename it or the document", path)
	}
	g.changed++
	if g.check {
		return g.showDiff(path, before, content)
	}
	if err := replaceFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing generated Go: %w", err)
	}
	fmt.Fprintln(g.out, "wrote", path)
	return nil
}

// writeOnce writes a file unless it exists. An existing file belongs to the user.
func (g *generator) writeOnce(path string, content []byte) error {
	if _, err := os.Lstat(path); err == nil {
		fmt.Fprintln(g.out, "kept", path)
		return nil
	}
	if err := replaceFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing a skeleton: %w", err)
	}
	g.changed++
	fmt.Fprintln(g.out, "wrote", path)
	return nil
}

// remove removes a generated file whose document no longer exists.
func (g *generator) remove(path string, before []byte) error {
	g.changed++
	if g.check {
		return g.showDiff(path, before, nil)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("removing a generated file without a document: %w", err)
	}
	fmt.Fprintln(g.out, "removed", path)
	return nil
}

func (g *generator) showDiff(path string, before, after []byte) error {
	g.found = true
	from, to := path, path
	if before == nil {
		from = os.DevNull
	}
	if after == nil {
		to = os.DevNull
	}
	_, err := g.out.Write(diff.Diff(from, before, to, after))
	return err
}

// generatedIn returns the contents of the generated files of a directory by their names.
func generatedIn(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for generated Go: %w", err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !gen.IsFileName(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("looking for generated Go: %w", err)
		}
		if _, generated := gen.SourceOf(content); generated {
			files[entry.Name()] = content
		}
	}
	return files, nil
}
