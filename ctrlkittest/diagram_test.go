// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
)

// fakeTB is a test whose end and failures can be watched.
type fakeTB struct {
	testing.TB
	name     string
	failed   bool
	log      strings.Builder
	cleanups []func()
}

func (f *fakeTB) Name() string                { return f.name }
func (f *fakeTB) Helper()                     {}
func (f *fakeTB) Failed() bool                { return f.failed }
func (f *fakeTB) Log(args ...any)             { fmt.Fprintln(&f.log, args...) }
func (f *fakeTB) Cleanup(c func())            { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Errorf(s string, arg ...any) { f.failed = true; fmt.Fprintf(&f.log, s+"\n", arg...) }
func (f *fakeTB) end() {
	for len(f.cleanups) > 0 {
		last := len(f.cleanups) - 1
		f.cleanups[last]()
		f.cleanups = f.cleanups[:last]
	}
}

func workflow() ctrlkit.Action {
	return ctrlkit.Sequential(
		ctrlkit.NewAction("First", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }),
		ctrlkit.NewAction("Second", func(context.Context) (ctrl.Result, error) {
			return ctrlkit.RequeueIfError(errors.New("quota exceeded"))
		}),
		ctrlkit.NewAction("Third", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }),
	)
}

func attachAndRun(tb testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	w := workflow()
	_, _ = w.Run(ctrlkittest.AttachDiagram(ctx, tb, w)) // what it returns is in the drawing
	cancel()                                            // as the context of a test is, before the cleanup
}

func TestFailureIsDrawn(t *testing.T) {
	tb := &fakeTB{name: "TestX/sub"}
	attachAndRun(tb)
	tb.failed = true
	tb.end()
	want := `the workflow and what became of it:
TestX/sub
Sequential
├── ✓ First
├── ✗ Second  failed: quota exceeded
└── ○ Third  not run

`
	if diff := cmp.Diff(want, tb.log.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestSuccessIsSilent(t *testing.T) {
	tb := &fakeTB{name: "TestX"}
	attachAndRun(tb)
	tb.end()
	if tb.log.Len() > 0 || tb.failed {
		t.Errorf("a test that passes logs %q", tb.log.String())
	}
}

func TestPicturesAreWrittenOnDemand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CTRLKIT_DIAGRAMS", dir)
	tb := &fakeTB{name: "TestX/a:b/.."}
	attachAndRun(tb)
	attachAndRun(tb)
	tb.end()
	if tb.failed {
		t.Fatalf("the test failed: %s", tb.log.String())
	}
	for _, name := range []string{"%2E%2E.svg", "%2E%2E-2.svg"} {
		picture, err := os.ReadFile(filepath.Join(dir, "TestX", "a:b", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(picture), "quota exceeded") {
			t.Errorf("%s does not show what failed", name)
		}
	}
}

func TestPictureThatCannotBeWrittenFailsTheTest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CTRLKIT_DIAGRAMS", file)
	tb := &fakeTB{name: "TestX"}
	attachAndRun(tb)
	tb.end()
	if !tb.failed {
		t.Error("the test passes although the picture was asked for and is missing")
	}
}
