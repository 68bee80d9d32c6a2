// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// What Go programs say when they die, as the runtime of Go 1.26 writes it.
const (
	indexPanic = `INFO  starting
panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
example.com/op/internal/lib.Third(...)
	/home/dev/op/internal/lib/lib.go:7
main.main()
	/home/dev/op/main.go:12 +0x1d
exit status 2`

	reconcilePanic = `panic: assignment to entry in nil map [recovered, repanicked]

goroutine 211 [running]:
sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Reconcile.func1()
	/root/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.25.0/pkg/internal/controller/controller.go:199 +0x1ae
panic({0x1b7fa40?, 0x2124ad0?})
	/usr/local/go/src/runtime/panic.go:783 +0x132
main.(*reconciler).Reconcile(0xc0001, {0x1, 0x2}, {{{0x1, 0x2}, {0x3, 0x4}}})
	/home/dev/op/reconcile.go:42 +0x9c
sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Reconcile(0xc0001)
	/root/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.25.0/pkg/internal/controller/controller.go:202 +0x1
created by sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Start.func2 in goroutine 190
	/root/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.25.0/pkg/internal/controller/controller.go:255 +0x5`

	nilPanic = `panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48f1c4]

goroutine 7 [running]:
github.com/other/dep.(*Client).Do(0x0)
	/root/go/pkg/mod/github.com/other/dep@v1.0.0/client.go:9 +0x4
example.com/op/internal/cloud.Create(...)
	example.com/op/internal/cloud/create.go:31 +0x12
created by main.main in goroutine 1
	example.com/op/main.go:9 +0x2a`

	deadlock = `fatal error: all goroutines are asleep - deadlock!

goroutine 1 [chan receive]:
main.main()
	/home/dev/op/main.go:5 +0x2a`

	noManager = `2026-01-01T00:00:00Z	ERROR	setup	problem running manager	{"error": "no"}
main.main
	/home/dev/op/main.go:80
runtime.main
	/usr/local/go/src/runtime/proc.go:283
goodbye`
)

func TestPanicIn(t *testing.T) {
	for name, test := range map[string]struct{ log, want string }{
		"in a library of the module":                   {indexPanic, "runtime error: index out of range [5] with length 3\n    in example.com/op/internal/lib.Third, /home/dev/op/internal/lib/lib.go:7"},
		"in a reconcile":                               {reconcilePanic, "assignment to entry in nil map [recovered, repanicked]\n    in main.(*reconciler).Reconcile, /home/dev/op/reconcile.go:42"},
		"built with -trimpath":                         {nilPanic, "runtime error: invalid memory address or nil pointer dereference\n    in example.com/op/internal/cloud.Create, example.com/op/internal/cloud/create.go:31"},
		"a fatal error":                                {deadlock, "all goroutines are asleep - deadlock!\n    in main.main, /home/dev/op/main.go:5"},
		"without a stack":                              {"panic: no", "no"},
		"the last of several":                          {"panic: handled\n\ngoroutine 1 [running]:\nmain.a()\n\t/home/dev/op/a.go:1\n" + deadlock, "all goroutines are asleep - deadlock!\n    in main.main, /home/dev/op/main.go:5"},
		"with control characters":                      {"panic: a\x1b[2Jb", `a\x1b[2Jb`},
		"no panic":                                     {noManager, ""},
		"a line of the operator that mentions a panic": {"INFO: it said panic: no", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := panicIn(strings.Split(test.log, "\n"), "/home/dev/op")
			if got != test.want || ok != (test.want != "") {
				t.Errorf("%v\ngot  %q\nwant %q", ok, got, test.want)
			}
		})
	}
}

func TestWithoutStacks(t *testing.T) {
	lines := append(strings.Split(noManager, "\n"), `{"level":"error","msg":"no","stacktrace":"main.main\n\t/home/dev/op/main.go:80 \"x\"","error":"e"}`, "main.main", "	indented", "\x1b[31mred\x1b[0m \x1b[2J")
	got, found := withoutStacks(lines)
	want := []string{
		`2026-01-01T00:00:00Z    ERROR    setup    problem running manager    {"error": "no"}`, "goodbye", `{"level":"error","msg":"no","error":"e"}`, "main.main", "    indented",
		"\x1b[31mred\x1b[0m \\x1b[2J\x1b[0m",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || !found {
		t.Errorf("found %v\ngot  %q\nwant %q", found, got, want)
	}
	if got, found := withoutStacks([]string{"a", "b"}); found || len(got) != 2 {
		t.Errorf("in a log without stacks it finds %v, %q", found, got)
	}
}

// The end of an operator is described without stacks, which are in a file.
func TestOperatorEnded(t *testing.T) {
	rings.Test(t, "starts processes")
	for _, test := range []struct {
		name, log string
		logs      bool
		want, not string
		file      bool
	}{
		{"panicked", reconcilePanic, false, "it panicked: assignment to entry in nil map [recovered, repanicked]\n    in main.(*reconciler).Reconcile, /home/dev/op/reconcile.go:42\n    its log is in ", "goroutine", true},
		{"panicked, with its log shown", reconcilePanic, true, "it panicked: assignment to entry in nil map", "goroutine", true},
		{"ended", noManager, false, "; its last lines:\n    2026-01-01T00:00:00Z    ERROR    setup    problem running manager    {\"error\": \"no\"}\n    goodbye\n    its log is in ", "proc.go", true},
		{"ended with few words", "no", false, "; its last lines:\n    no", "its log is", false},
		{
			"ended without a definition", `ERROR if kind is a CRD {"error": "no matches for kind \"Certificate\" in version \"cert-manager.io/v1\""}` + "\ngoodbye", false,
			"the API server does not have Certificate of cert-manager.io/v1: if the operator watches it, give the file of its definition to --crds", "its log is", false,
		},
		{"ended with few words, with its log shown", "no", true, "exit status 2 after", "no", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &runner{Options: Options{Logs: test.logs}, project: &Project{ModuleDir: "/home/dev/op"}, program: filepath.Join(t.TempDir(), "op"), start: time.Now()}
			r.operator = startTestOperator(t, "cat <<'END'\n"+test.log+"\nEND\nexit 2", nil)
			err := r.operatorEnded()
			if !errors.Is(err, ErrOperatorEnded) || !strings.Contains(err.Error(), "exit status 2 after") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), test.not) {
				t.Errorf("%v", err)
			}
			content, readErr := os.ReadFile(r.program + ".log")
			if kept := readErr == nil && string(content) == test.log+"\n"; kept != test.file || test.file && !strings.Contains(err.Error(), r.program+".log") {
				t.Errorf("its log: %v\n%s", readErr, content)
			}
		})
	}
}

// A real one: what the runtime says is understood.
func TestOperatorEndedOfThisProgram(t *testing.T) {
	rings.Test(t, "starts processes")
	if os.Getenv("CTRLKIT_TEST_PANIC") != "" {
		panic("on purpose")
	}
	self, err := os.Executable()
	must(t, err)
	dir, err := os.Getwd()
	must(t, err)
	r := &runner{project: &Project{ModuleDir: filepath.Dir(filepath.Dir(dir))}, program: filepath.Join(t.TempDir(), "op"), start: time.Now()}
	r.operator = startTestOperator(t, fmt.Sprintf("CTRLKIT_TEST_PANIC=1 exec %s -test.run '^%s$'", self, t.Name()), nil)
	err = r.operatorEnded()
	if want := "it panicked: on purpose"; !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "run.TestOperatorEndedOfThisProgram, "+filepath.Join(dir, "panic_test.go")+":") {
		t.Errorf("%v", err)
	}
}
