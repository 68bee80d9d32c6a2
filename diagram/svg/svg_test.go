package svg_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/diagram"
	"github.com/ctrlkit/ctrlkit/diagram/svg"
)

func TestWorkflow(t *testing.T) {
	workflow := ctrlkit.Describe(ctrlkit.NewAction("Sync", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }))
	var got, want bytes.Buffer
	if err := diagram.SVG(&want, workflow, diagram.WithTitle("x")); err != nil {
		t.Fatal(err)
	}
	if err := svg.Workflow(t.Context(), &got, workflow, diagram.WithTitle("x")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("(-diagram.SVG +svg.Workflow):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := svg.Workflow(ctx, &got, workflow); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that the context is cancelled", err)
	}
}
