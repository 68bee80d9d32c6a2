// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/diagram"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

var update = flag.Bool("update", false, "rewrite the golden files, and fail")

// everything has every kind of node and, when run, every outcome.
func everything() ctrlkit.Action {
	ok := ctrlkit.NoRequeue
	yes := func(context.Context) (bool, error) { return true, nil }
	return ctrlkit.Finally(
		ctrlkit.Join(
			ctrlkit.Sequential(
				action("CheckSpec", ok),
				ctrlkit.Timeout(5*time.Second, ctrlkit.Retry(wait.Backoff{Steps: 3}, action("CreateBucket", func() (ctrl.Result, error) {
					return ctrlkit.RequeueIfError(errors.New("bucket \"a\": <denied>\nand more"))
				}))),
				action("NeverReached", ok),
			),
			ctrlkit.JoinOrdered(
				action("First", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.RequeueWithin(time.Minute) }),
				ctrlkit.Once(action("Second", ctrlkit.Exit)),
				action("Third", ctrlkit.RequeueImmediately),
				action("Fourth", func() (ctrl.Result, error) {
					return ctrl.Result{}, ctrlkit.Poll("the bucket to be empty", 90*time.Second)
				}),
			),
			ctrlkit.ParallelJoin(
				ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
					volume := g.Add(action("SyncVolume", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("volume data-0 to be bound") }))
					config := g.Add(action("SyncConfig", ok))
					pods := g.Add(ctrlkit.Sequential(action("SyncPods", ok), action("ScalePods", ok)), volume, config)
					g.Add(action("SyncService", ok), pods)
				}),
				ctrlkit.Graph(func(*ctrlkit.GraphBuilder) {}),
			),
			ctrlkit.IfElseFunc("enough replicas?", yes, action("Shrink", func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(time.Hour) }), ctrlkit.Nop()),
			ctrlkit.If(false, action("Debug", ok)),
		),
		action("UpdateStatus", ok),
	)
}

func TestGolden(t *testing.T) {
	workflow := everything()
	node := ctrlkit.Describe(workflow)
	var recorder diagram.Recorder
	_, _ = workflow.Run(ctrlkit.ContextWithHook(t.Context(), &recorder)) // what it returns is in the drawings
	outcomes := diagram.WithOutcomes(&recorder)
	type draw func(io.Writer, outline.Node, ...diagram.Option) error
	for _, test := range []struct {
		file    string
		draw    draw
		options []diagram.Option
	}{
		{"everything.txt", diagram.Text, nil},
		{"everything.ascii.txt", diagram.Text, []diagram.Option{diagram.WithASCII(), outcomes, diagram.WithTitle("A \x1b[31mtitle")}},
		{"everything.color.txt", diagram.Text, []diagram.Option{diagram.WithColors(), outcomes}},
		{"everything.dot", diagram.DOT, []diagram.Option{outcomes}},
		{"everything.svg", diagram.SVG, []diagram.Option{outcomes, diagram.WithTitle("Everything")}},
		{"everything.mmd", diagram.Mermaid, []diagram.Option{outcomes, diagram.WithLeftToRight(), diagram.WithTitle("Everything")}},
	} {
		t.Run(test.file, func(t *testing.T) {
			var got bytes.Buffer
			if err := test.draw(&got, node, test.options...); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, test.file, got.String())
		})
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	want, err := os.ReadFile(path)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
		t.Errorf("%s: %v (-want +got):\n%s", path, err, diff)
	}
}

// A node that was put together by hand may make no sense; drawing it must not panic.
func TestAnyNodeCanBeDrawn(t *testing.T) {
	var node func(depth int) *rapid.Generator[outline.Node]
	node = func(depth int) *rapid.Generator[outline.Node] {
		return rapid.Custom(func(t *rapid.T) outline.Node {
			n := outline.Node{Kind: outline.Kind(rapid.IntRange(-1, 15).Draw(t, "kind")), Label: rapid.String().Draw(t, "label")}
			if depth > 0 {
				n.Children = rapid.SliceOfN(node(depth-1), 0, 3).Draw(t, "children")
			}
			for range rapid.IntRange(0, 4).Draw(t, "after") {
				// An index that does not exist would panic in the node's own String.
				n.After = append(n.After, rapid.SliceOfN(rapid.IntRange(0, max(len(n.Children)-1, 0)), 0, min(2, len(n.Children))).Draw(t, "indexes"))
			}
			return n
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		n := node(3).Draw(t, "node")
		outcomes := diagram.Marked(diagram.Outcomes{{Action: n.Label, State: diagram.State(rapid.IntRange(-1, 9).Draw(t, "state"))}})
		for _, draw := range []func(io.Writer, outline.Node, ...diagram.Option) error{diagram.Text, diagram.DOT, diagram.Mermaid} {
			var first, second bytes.Buffer
			if err := errors.Join(draw(&first, n, outcomes), draw(&second, n, outcomes)); err != nil {
				t.Fatal(err)
			}
			if first.String() != second.String() {
				t.Fatal("the second drawing differs from the first")
			}
		}
	})
}

// Every action is drawn exactly once in every format, whatever it is inside of.
func TestEveryActionIsDrawnOnce(t *testing.T) {
	node := ctrlkit.Describe(everything())
	names := []string{"CheckSpec", "CreateBucket", "NeverReached", "First", "Second", "Third", "Fourth", "SyncVolume", "SyncConfig", "ScalePods", "SyncService", "Shrink", "Debug", "UpdateStatus"}
	for format, draw := range map[string]func(io.Writer, outline.Node, ...diagram.Option) error{"DOT": diagram.DOT, "Mermaid": diagram.Mermaid} {
		var b strings.Builder
		if err := draw(&b, node); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if n := strings.Count(b.String(), `"`+name+`"`); n != 1 {
				t.Errorf("%s: %s is drawn %d times, want once", format, name, n)
			}
		}
	}
}

func TestActionsOfAnotherWorkflowAreListed(t *testing.T) {
	var b strings.Builder
	node := ctrlkit.Describe(action("Mine", ctrlkit.NoRequeue))
	err := diagram.Text(&b, node, diagram.Marked(diagram.Outcomes{{Action: "Mine", State: diagram.StateDone, Runs: 2}, {Action: "Other", State: diagram.StateRunning}}))
	want := "✓ Mine  done (2 runs)\nnot part of this workflow\n└── ▶ Other  running\n"
	if diff := cmp.Diff(want, b.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
