// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/diagram"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// diagramDirectory is the environment variable that names the directory for SVG files. A relative
// name is relative to the directory of the package under test.
const diagramDirectory = "CTRLKIT_DIAGRAMS"

// AttachDiagram returns a context under which the outcomes of the actions of workflow are recorded,
// and draws them when the test ends. Run the workflow with it, once or, for a test of several
// reconciles, any number of times: what is drawn is the latest outcome of each action.
//
// A test may attach several workflows. A picture that cannot be written fails the test, because
// the environment asked for it.
func AttachDiagram(ctx context.Context, tb testing.TB, workflow ctrlkit.Action) context.Context {
	tb.Helper()
	recorder := &diagram.Recorder{}
	name := numbered(tb)
	node := ctrlkit.Describe(workflow)
	tb.Cleanup(func() {
		tb.Helper()
		options := []diagram.Option{diagram.WithTitle(tb.Name()), diagram.WithOutcomes(recorder)}
		if dir := os.Getenv(diagramDirectory); dir != "" {
			if err := writeDiagram(dir, name, node, options); err != nil {
				tb.Errorf("drawing the workflow of the test: %v", err)
			}
		}
		if tb.Failed() {
			tb.Log(diagramText(node, options))
		}
	})
	return ctrlkit.ContextWithHook(ctx, recorder)
}

func diagramText(workflow outline.Node, options []diagram.Option) string {
	var b strings.Builder
	_ = diagram.Text(&b, workflow, options...) // writing to a Builder never fails
	return "the workflow and what became of it:\n" + b.String()
}

// writeDiagram draws into a file named after the test, subtests in directories.
func writeDiagram(dir, test string, workflow outline.Node, options []diagram.Option) error {
	var picture bytes.Buffer
	if err := diagram.SVG(&picture, workflow, options...); err != nil {
		return err
	}
	base := filepath.Join(dir, fileName(test))
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return err
	}
	return os.WriteFile(base+".svg", picture.Bytes(), 0o644) //nolint:gosec // a picture is public
}

// fileName keeps the slashes of subtests and escapes what else a file system may not like.
func fileName(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(part), "..", "%2E%2E")
	}
	return filepath.Join(parts...)
}

// attached counts the workflows of the running tests, so that each gets a file of its own, and the
// same one in every run.
var attached sync.Map // of test name to *atomic.Int32

func numbered(tb testing.TB) string {
	counter, loaded := attached.LoadOrStore(tb.Name(), new(atomic.Int32))
	if !loaded {
		tb.Cleanup(func() { attached.Delete(tb.Name()) })
	}
	n := counter.(*atomic.Int32).Add(1) //nolint:forcetypeassert // nothing else is stored
	if n == 1 {
		return tb.Name()
	}
	return fmt.Sprintf("%s-%d", tb.Name(), n)
}
