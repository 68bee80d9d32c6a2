// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"os"
	"testing"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// Start starts a control plane that is stopped when the test ends. It fails the test
//
//   - if the control plane cannot be started,
//   - if one of its processes ends before the test does,
//   - if it cannot be stopped.
//
// The programs are built first if necessary, with progress on standard error. The build may take
// longer than the ten minutes that go test allows by default: run `ctrlkit controlplane build` once
// before.
func Start(tb testing.TB, options controlplane.Options) *controlplane.ControlPlane {
	tb.Helper()
	plane, err := start(tb, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := plane.Err(); err != nil {
			tb.Errorf("during the test: %v", err)
		}
		if err := plane.Stop(); err != nil {
			tb.Errorf("stopping the control plane: %v", err)
		}
	})
	return plane
}

func start(tb testing.TB, options controlplane.Options) (*controlplane.ControlPlane, error) {
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	return controlplane.Start(tb.Context(), options)
}
