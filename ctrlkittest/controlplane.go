// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
)

// StartControlPlane starts a control plane, the real one, for a test and stops it when the test
// ends. The test fails if the control plane cannot be started or stopped, and if one of its
// processes ends before the test does.
//
// The programs are built first if necessary, with progress on standard error. The build may take
// longer than the ten minutes that go test allows by default: run `ctrlkit controlplane build` once
// before.
func StartControlPlane(tb testing.TB, options controlplane.Options) *controlplane.ControlPlane {
	tb.Helper()
	return planetest.Start(tb, options)
}

// A SharedControlPlane is one for all tests of a package. It is started for the first test that
// calls ForTest, so that a run of other tests does not pay for it:
//
//	var shared = ctrlkittest.SharedControlPlane{
//		Options: controlplane.Options{Parts: controlplane.AllParts},
//	}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
type SharedControlPlane = planetest.Shared
