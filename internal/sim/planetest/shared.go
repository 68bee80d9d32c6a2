// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"os"
	"sync"
	"testing"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// Variable is the environment variable with the directory of the control plane to attach to.
const Variable = "CTRLKIT_CONTROLPLANE"

// A Shared is one control plane for all tests of a package. It is started for the first test that
// calls ForTest, so that a run of other tests does not pay for it:
//
//	var shared = planetest.Shared{Options: controlplane.Options{Parts: controlplane.AllParts}}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
// The tests stay independent of each other by using a namespace each.
//
// The tests of several packages share one control plane if the environment variable
// CTRLKIT_CONTROLPLANE names the directory of a running one, as [controlplane.ControlPlane.Share]
// returns it. It may have more parts than the options ask for, and objects of other tests. Tests that
// can't live with that call [Start].
type Shared struct {
	// Options are those of the control plane. They must not be changed after
	// the first call of ForTest.
	Options controlplane.Options

	once  sync.Once
	plane *controlplane.ControlPlane
	err   error
}

// ForTest returns the shared control plane. The first call starts it, or
// attaches to the one of the environment. ForTest fails the test if the
// control plane could not be started, in this call or an earlier one, and if one of its processes
// has ended.
func (s *Shared) ForTest(tb testing.TB) *controlplane.ControlPlane {
	tb.Helper()
	s.once.Do(func() {
		if dir := os.Getenv(Variable); dir != "" {
			s.plane, s.err = controlplane.Attach(tb.Context(), dir, s.Options)
			return
		}
		s.plane, s.err = start(tb, s.Options)
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	if err := s.plane.Err(); err != nil {
		tb.Fatalf("the shared control plane no longer runs: %v", err)
	}
	return s.plane
}

// Main runs the tests of a package and then stops the control plane, if it was
// started. It returns the exit code for os.Exit.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	s.once.Do(func() {}) // from here on, ForTest does not start it
	if s.plane == nil {
		return code
	}
	if err := s.plane.Stop(); err != nil {
		os.Stderr.WriteString("stopping the shared control plane: " + err.Error() + "\n")
		return max(code, 1)
	}
	return code
}
