// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// useSource makes Build compile a module that is small but has the shape of the
// real one, into a cache of the test's own. The argument is the source of both batches.
func useSource(t *testing.T, main string) (source, cache string) {
	t.Helper()
	return useSources(t, main, main)
}

func useSources(t *testing.T, servers, clients string) (source, cache string) {
	t.Helper()
	rings.Test(t, "starts the go command")
	source, cache = t.TempDir(), t.TempDir()
	files := map[string]string{
		"go.mod":              "module " + programsModule + "\n\ngo 1.26.0\n",
		"cmd/servers/main.go": servers,
		"cmd/clients/main.go": clients,
		"cmd/kwok/main.go":    "package main\n\nfunc main() {}\n",
	}
	for name, content := range files {
		path := filepath.Join(source, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	t.Setenv(SourceVariable, source)
	t.Setenv(CacheVariable, cache)
	t.Setenv(AssetsVariable, "")
	return source, cache
}

// built builds what is missing, and keyOf is the name of the build.
func built(t *testing.T) Assets {
	t.Helper()
	assets, err := Build(t.Context(), BuildOptions{})
	must(t, err)
	return assets
}

func keyOf(t *testing.T) string {
	t.Helper()
	recipe, err := newRecipe(t.Context())
	must(t, err)
	return recipe.key()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const smallMain = "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(os.Args[0]) }\n"

func TestBuildMakesAllPrograms(t *testing.T) {
	useSource(t, smallMain)
	assets := built(t)
	for _, name := range slices.Concat(servers.programs(), clients.programs()) {
		path := assets.Program(name)
		output, err := exec.Command(path).Output()
		if err != nil {
			t.Errorf("running %s: %v", name, err)
		}
		if name != kwokProgram && string(output) != path {
			t.Errorf("%s was called by the name %q", name, output)
		}
	}
}

func TestBuildSaysNothingWhenThereIsNothingToDo(t *testing.T) {
	useSource(t, smallMain)
	var first, second strings.Builder
	if _, err := Build(t.Context(), BuildOptions{Progress: &first}); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), BuildOptions{Progress: &second}); err != nil {
		t.Fatal(err)
	}
	if first.Len() == 0 || second.Len() != 0 {
		t.Errorf("the first build said %q and the second %q, want something and nothing", &first, &second)
	}
}

func TestBuildAgainWhenTheSourceChanges(t *testing.T) {
	source, _ := useSource(t, smallMain)
	before := built(t)
	must(t, os.WriteFile(filepath.Join(source, "cmd", "kwok", "more.go"), []byte("package main\n"), 0o644))
	after := built(t)
	if before == after {
		t.Errorf("both builds are in %s", before.Dir)
	}
}

func TestBuildRepairsAnIncompleteBuild(t *testing.T) {
	useSource(t, smallMain)
	assets := built(t)
	must(t, os.Remove(assets.Program(etcdProgram)))
	built(t)
	if err := assets.check(AllParts); err != nil {
		t.Error(err)
	}
}

func TestOnlyOneOfManyBuilds(t *testing.T) {
	_, cache := useSource(t, smallMain)
	var group sync.WaitGroup
	said := make([]strings.Builder, 4)
	for i := range said {
		group.Go(func() {
			if _, err := Build(t.Context(), BuildOptions{Progress: &said[i]}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	builders := 0
	for i := range said {
		builders += strings.Count(said[i].String(), "built ")
	}
	if builders != 2 {
		t.Errorf("%d of %d have built something, want one each batch", builders, len(said))
	}
	checkNothingHalfFinished(t, cache)
}

func TestBuildFromAReadOnlyDirectory(t *testing.T) {
	source, _ := useSource(t, smallMain)
	setMode(t, source, 0o555, 0o444)
	t.Cleanup(func() { setMode(t, source, 0o755, 0o644) })
	built(t)
}

func setMode(t *testing.T, root string, directories, files fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Chmod(path, directories)
		}
		return os.Chmod(path, files)
	})
	must(t, err)
}

func TestBuildIgnoresSettingsMeantForOtherModules(t *testing.T) {
	useSource(t, smallMain)
	t.Setenv("GOFLAGS", "-mod=vendor -race -p=2")
	t.Setenv("GOOS", "plan9")
	t.Setenv("GOWORK", filepath.Join(t.TempDir(), "go.work"))
	built(t)
}

func TestBuildRemovesWhatAKilledBuilderLeft(t *testing.T) {
	_, cache := useSource(t, smallMain)
	must(t, os.Mkdir(filepath.Join(cache, keyOf(t)+".tmp-1234"), 0o755))
	built(t)
	checkNothingHalfFinished(t, cache)
}

func TestBuildForgetsWhatWasNotUsedForLong(t *testing.T) {
	_, cache := useSource(t, smallMain)
	now := time.Now()
	for name, used := range map[string]time.Time{
		"00000000000000aa":       now.Add(-forgetAfter - time.Hour),
		"00000000000000bb.tmp-1": now.Add(-forgetAfter - time.Hour),
		"00000000000000cc":       now.Add(-forgetAfter + time.Hour),
		"not a build":            now.Add(-forgetAfter - time.Hour),
	} {
		dir := filepath.Join(cache, name)
		must(t, os.Mkdir(dir, 0o755))
		must(t, os.Chtimes(dir, used, used))
	}
	assets := built(t)
	var kept []string
	entries, err := os.ReadDir(cache)
	must(t, err)
	for _, entry := range entries {
		if entry.IsDir() {
			kept = append(kept, entry.Name())
		}
	}
	want := []string{filepath.Base(assets.Dir), "00000000000000cc", "not a build"}
	slices.Sort(want)
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestUsingABuildKeepsIt(t *testing.T) {
	useSource(t, smallMain)
	assets := built(t)
	long := time.Now().Add(-2 * forgetAfter)
	must(t, os.Chtimes(assets.Dir, long, long))
	built(t)
	info, err := os.Stat(assets.Dir)
	must(t, err)
	if time.Since(info.ModTime()) > forgetAfter {
		t.Errorf("last used %s, want now", info.ModTime())
	}
}

func TestBuildQuotesTheCompiler(t *testing.T) {
	_, cache := useSource(t, brokenMain)
	_, err := Build(t.Context(), BuildOptions{})
	if err == nil || !strings.Contains(err.Error(), "undefined: undefinedFunction") {
		t.Errorf("err = %v, want the compiler's words", err)
	}
	checkNothingHalfFinished(t, cache)
}

func TestBuildExplainsAMissingCompiler(t *testing.T) {
	useSource(t, smallMain)
	t.Setenv("PATH", t.TempDir())
	_, err := Build(t.Context(), BuildOptions{})
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "install Go") {
		t.Errorf("err = %v, want one that says that Go is missing and what to do", err)
	}
}

func TestBuildExplainsAFullDisk(t *testing.T) {
	err := explainBuildError(errors.New("link: write a.out: no space left on device"))
	if !strings.Contains(err.Error(), "GOCACHE") {
		t.Errorf("err = %v, want one that says where space is needed", err)
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	_, cache := useSource(t, smallMain)
	ctx, cancel := context.WithCancel(t.Context())
	progress := writerFunc(func(text string) {
		if strings.Contains(text, "API server") {
			cancel()
		}
	})
	if _, err := Build(ctx, BuildOptions{Progress: progress}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want %v", err, context.Canceled)
	}
	checkNothingHalfFinished(t, cache)
}

const brokenMain = "package main\n\nfunc main() { undefinedFunction() }\n"

type writerFunc func(text string)

func (f writerFunc) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

func TestBuildWaitsForTheLockNoLongerThanItsContext(t *testing.T) {
	_, cache := useSource(t, smallMain)
	unlock, err := lock(t.Context(), filepath.Join(cache, keyOf(t)+".lock"), io.Discard)
	must(t, err)
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var said strings.Builder
	if _, err := Build(ctx, BuildOptions{Progress: &said}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want %v", err, context.DeadlineExceeded)
	}
	if want := "waiting for another process that builds the control plane\n"; said.String() != want {
		t.Errorf("said %q, want %q", &said, want)
	}
}

func checkNothingHalfFinished(t *testing.T, cache string) {
	t.Helper()
	remaining, err := filepath.Glob(filepath.Join(cache, "*.tmp-*"))
	must(t, err)
	if len(remaining) > 0 {
		t.Errorf("incomplete builds remain: %v", remaining)
	}
}

func TestFindAssetsTakesTheUsersDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(AssetsVariable, dir)
	t.Setenv("PATH", "") // nothing can be built
	for _, name := range programsOf(0) {
		must(t, os.WriteFile(Assets{Dir: dir}.Program(name), nil, 0o755))
	}
	var said strings.Builder
	got, err := FindAssets(t.Context(), 0, BuildOptions{Progress: &said})
	must(t, err)
	if diff := cmp.Diff(Assets{Dir: dir}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(said.String(), dir) {
		t.Errorf("said %q, want the directory named", &said)
	}
	_, err = FindAssets(t.Context(), PartNodes, BuildOptions{})
	if err == nil || !strings.Contains(err.Error(), kwokProgram) || !strings.Contains(err.Error(), AssetsVariable) {
		t.Errorf("err = %v, want one that names a missing program and %s", err, AssetsVariable)
	}
}

func TestFindSourceRefusesAnotherModule(t *testing.T) {
	rings.Test(t, "starts the go command")
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/other\n"), 0o644))
	t.Setenv(SourceVariable, dir)
	if _, err := findSource(t.Context(), "go", sourceFinders); err == nil || !strings.Contains(err.Error(), programsModule) {
		t.Errorf("err = %v, want one that names the module that is wanted", err)
	}
}

func TestFindSourceInTheCheckout(t *testing.T) {
	rings.Test(t, "starts the go command")
	_, file, _, _ := runtime.Caller(0)
	want := filepath.Join(filepath.Dir(file), "kubernetes")
	t.Setenv(SourceVariable, "")
	for name, finder := range map[string]sourceFinder{"of the working directory": sourceInCheckout, "of the compilation": sourceOfCompilation} {
		got, err := findSource(t.Context(), "go", []sourceFinder{finder})
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestFindSourceOfTheCompilationFromAnywhere(t *testing.T) {
	rings.Test(t, "starts the go command")
	t.Setenv(SourceVariable, "")
	t.Chdir(t.TempDir())
	if _, err := findSource(t.Context(), "go", sourceFinders); err != nil {
		t.Error(err)
	}
}

func TestFindSourceSaysWhatItTried(t *testing.T) {
	rings.Test(t, "starts the go command")
	t.Setenv(SourceVariable, "")
	t.Chdir(t.TempDir())
	_, err := findSource(t.Context(), "go", []sourceFinder{sourceInCheckout, sourceOfRunningVersion})
	if err == nil {
		t.Fatal("found a source where there is none")
	}
	for _, want := range []string{"looking for a checkout", "downloading the module", SourceVariable} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want it to say %q", err, want)
		}
	}
}

// The programs and an operator share what is compiled of the modules that both need, if they have them
// in the same versions.
func TestSharesModulesWithOperators(t *testing.T) {
	versions := func(name string) map[string]string {
		data, err := os.ReadFile(name)
		must(t, err)
		file, err := modfile.Parse(name, data, nil)
		must(t, err)
		all := make(map[string]string)
		for _, r := range file.Require {
			all[r.Mod.Path] = r.Mod.Version
		}
		for _, r := range file.Replace {
			all[r.Old.Path] = r.New.Version
		}
		return all
	}
	programs := versions("kubernetes/go.mod")
	for path, version := range versions("../go.mod") {
		if theirs, both := programs[path]; both && theirs != version {
			t.Errorf("%s is %s for operators, and %s for the programs: run go get %s@%s there, or here", path, version, theirs, path, version)
		}
	}
}
