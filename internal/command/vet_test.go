// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// moduleAt writes a module that uses the library of this checkout, in the versions that this module
// has chosen, and makes it the working directory.
func moduleAt(t *testing.T, files map[string]string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	required, err := os.ReadFile(filepath.Join(root, "go.mod"))
	must(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	must(t, err)
	const path = "github.com/ctrlkit/ctrlkit"
	files["go.mod"] = strings.Replace(string(required), "module "+path, "module example.com/operator", 1) +
		fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", path, root)
	files["go.sum"] = string(sums)
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
}

const controller = `package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

func update() ctrlkit.Action { return ctrlkit.Nop() }

func reconcile(ctx context.Context) (ctrl.Result, error) {
	%s
	return ctrlkit.IgnoreExit(update().Run(ctx))
}
`

func TestVetFindsTheDiscardedAction(t *testing.T) {
	rings.Test(t, "loads packages")
	moduleAt(t, map[string]string{
		"controller.go":      fmt.Sprintf(controller, "defer update()"),
		"controller_test.go": "package controller\n\nfunc forTests() { update() }\n",
	})
	stdout, stderr, err := execute(t, "", "vet", "./...")
	want := `controller.go:14:8: defer update(...) makes an action and never runs it: run it after the others with ctrlkit.Finally(workflow, update(...)) [discarded]
controller_test.go:3:19: update(...) makes an action that is never run: make it part of the workflow, or run it with .Run(ctx) [discarded]
`
	if diff := cmp.Diff(want, stdout); diff != "" || exitCode(err) != exitFound {
		t.Errorf("exit code %d, %v %s (-want +got):\n%s", exitCode(err), err, stderr, diff)
	}
}

func TestVetIsSilentWhenNothingIsWrong(t *testing.T) {
	rings.Test(t, "loads packages")
	moduleAt(t, map[string]string{"controller.go": fmt.Sprintf(controller, "")})
	if stdout, _, err := execute(t, "", "vet"); err != nil || stdout != "" {
		t.Errorf("printed %q and returned %v, want nothing", stdout, err)
	}
}

// What can't be loaded is said once, with what to do about it.
func TestVetSaysWhatCannotBeLoaded(t *testing.T) {
	rings.Test(t, "loads packages")
	const test = "package controller\n\nfunc forTests() {}\n"
	for name, tt := range map[string]struct {
		files map[string]string
		sums  string
		want  string
	}{
		"an undefined name":   {map[string]string{"a.go": "package controller\n\nvar x = y\n", "a_test.go": test}, "", `^loading example.com/operator: \S+a.go:3:9: undefined: y$`},
		"a mistake of syntax": {map[string]string{"a.go": "package controller\n\nfunc {\n", "b.go": "package controller\n\nvar x = y\n", "a_test.go": test}, "", `^loading example.com/operator: \S+a.go:3:6: syntax error: [^\n]*$`},
		"no go.sum":           {map[string]string{"controller.go": fmt.Sprintf(controller, "")}, "none", `^loading [^\n]*missing go.sum entry(?s:.*)\ngo.sum is not complete, of which this is one of \d+ errors?: run go mod tidy$`},
	} {
		t.Run(name, func(t *testing.T) {
			moduleAt(t, tt.files)
			if tt.sums != "" {
				t.Setenv("GOFLAGS", "-mod=readonly")
				must(t, os.Remove("go.sum"))
			}
			_, _, err := execute(t, "", "vet")
			if exitCode(err) != exitFound || !regexp.MustCompile(tt.want).MatchString(errorText(err)) || strings.Count(errorText(err), "\n") > 6 {
				t.Errorf("exit code %d, want %s, got\n%s", exitCode(err), tt.want, errorText(err))
			}
		})
	}
	t.Chdir(t.TempDir())
	if _, _, err := execute(t, "", "vet", "./..."); !strings.HasSuffix(errorText(err), "\nthere is no go.mod in this directory or above it") {
		t.Errorf("without a module: %v", err)
	}
}

func TestFewErrors(t *testing.T) {
	if got := few(slices.Repeat([]error{os.ErrNotExist}, mostErrors+2)).Error(); strings.Count(got, "\n") != mostErrors || !strings.HasSuffix(got, "\n... and 2 more errors") {
		t.Errorf("got %s", got)
	}
}

// plants are one mistake for each analyzer, in a copy of the example 03_rwexternal: what is replaced
// in which file. A comment names the analyzer that has to report the line.
var plants = []struct{ file, code, planted string }{
	{"input.go", "\t\"strconv\"\n", "\t\"strconv\"\n\t\"time\"\n\n\t\"sigs.k8s.io/controller-runtime/pkg/client\"\n"},
	{"input.go", "// input waits for", `var direct client.Client

// LookImpl and NewLook are like those that are generated.
type LookImpl interface{ Look() }

func NewLook(LookImpl, ...ctrlkit.ActionOption) {}

type looks struct{}

func (looks) Look()           {}
func (looks) AfterActionRun() {} // planted: hooks

// input waits for`},
	{"input.go", "\tkey := inputOf(req.Object)\n", `	key := inputOf(req.Object)
	if time.Since(req.Object.CreationTimestamp.Time) < time.Second { // planted: clock
		ctrlkit.Wait("the input") // planted: discarded
	}
	if err := direct.Get(ctx, key, &corev1.Secret{}); err != nil { // planted: bypass
		return err
	}
	if _, err := step.GetOrWait[*corev1.ConfigMap](ctx, req, key); err != nil { // planted: unwatched
		return err
	}
`},
	{"input.go", "step.GetOrWait[*corev1.Secret](ctx, req, key)", "step.GetOrWait[*corev1.Secret](context.Background(), req, key) // planted: background"},
	{"input.go", `MarkHealthy(v1.ConditionInputReady, "InputRead", "")`, `MarkHealthy("InputRead", "InputRead", "") // planted: undeclared`},
	{"controller.go", "\treturn step.Control(mgr,", "\tdirect = mgr.GetClient()\n\treturn step.Control(mgr,"},
	{"input.go", "\t\t\treturn []types.NamespacedName{inputOf(obj)}", "\t\t\tobj.Spec.InputSecret = \"\" // planted: shared\n\t\t\treturn []types.NamespacedName{inputOf(obj)}"},
}

// exampleFiles returns the example 03_rwexternal as a package of the module of moduleAt.
func exampleFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"*.go", "api/v1/*.go"} {
		names, err := filepath.Glob("../../examples/03_rwexternal/" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("found no files for %s: %v", pattern, err)
		}
		for _, name := range names {
			if base := filepath.Base(name); base == "main.go" || strings.HasSuffix(base, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			must(t, err)
			code := strings.ReplaceAll(string(text), "github.com/ctrlkit/ctrlkit/examples/03_rwexternal", "example.com/operator")
			files[filepath.Join(filepath.Dir(pattern), filepath.Base(name))] = strings.Replace(code, "package main\n", "package operator\n", 1)
		}
	}
	return files
}

// One mistake for each analyzer, planted in an example, is reported with its line, and nothing else.
func TestVetFindsWhatIsPlanted(t *testing.T) {
	rings.Test(t, "loads packages")
	files := exampleFiles(t)
	for _, p := range plants {
		if strings.Count(files[p.file], p.code) != 1 {
			t.Fatalf("%s has %q %d times: change the plants with the example", p.file, p.code, strings.Count(files[p.file], p.code))
		}
		files[p.file] = strings.Replace(files[p.file], p.code, p.planted, 1)
	}
	var want []string
	for name, text := range files {
		for i, line := range strings.Split(text, "\n") {
			if _, analyzer, ok := strings.Cut(line, "// planted: "); ok {
				want = append(want, fmt.Sprintf("%s:%d %s", name, i+1, analyzer))
			}
		}
	}
	moduleAt(t, files)
	stdout, stderr, err := execute(t, "", "vet", "--json", "./...")
	if exitCode(err) != exitFound {
		t.Errorf("exit code %d, %v %s", exitCode(err), err, stderr)
	}
	var found []finding
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	var got []string
	for _, f := range found {
		got = append(got, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Analyzer))
		if f.Message == "" || f.Column == 0 || !strings.HasSuffix(f.URL, "#"+f.Analyzer) {
			t.Errorf("got %+v", f)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) != len(analyzerNames()) {
		t.Errorf("planted %q, want one for each of %q", want, analyzerNames())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, stdout)
	}

	stdout, _, err = execute(t, "", "vet", "--only", "clock,shared", "--skip", "shared", ".")
	if exitCode(err) != exitFound || strings.Count(stdout, "\n") != 1 || !strings.HasSuffix(stdout, "[clock]\n") {
		t.Errorf("exit code %d and %s, want what clock reports", exitCode(err), stdout)
	}
	stdout, _, err = execute(t, "", "vet", "-o", "json", "./api/...")
	if err != nil || stdout != "[]\n" {
		t.Errorf("%v and %q, want no findings", err, stdout)
	}
}
