// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"sync"
	"testing"
)

// StartForTest starts a control plane that is stopped when the test ends. The test
// fails if it cannot be started, and if one of its processes ends before the
// test does. When the programs must be built first, progress is written to
// standard error; that may take longer than the ten minutes that go test
// allows by default, so run `ctrlkit controlplane build` once before.
func StartForTest(tb testing.TB, options Options) *ControlPlane {
	tb.Helper()
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	plane, err := Start(tb.Context(), options)
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

// A Shared is one control plane for all tests of a package. It is started for
// the first test that asks for it, so that a run of other tests does not pay:
//
//	var shared = controlplane.Shared{Options: controlplane.Options{Parts: controlplane.AllParts}}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
// The tests keep out of each other's way by using namespaces of their own.
type Shared struct {
	// Options are those of the control plane. They must not be changed after
	// the first call of ForTest.
	Options Options

	once  sync.Once
	plane *ControlPlane
	err   error
}

// ForTest returns the shared control plane, which it starts when it is called for
// the first time. It fails the test if that did not succeed, also in each later
// call, and if a process of the control plane has ended.
func (s *Shared) ForTest(tb testing.TB) *ControlPlane {
	tb.Helper()
	s.once.Do(func() {
		options := s.Options
		if options.Progress == nil {
			options.Progress = os.Stderr
		}
		s.plane, s.err = Start(tb.Context(), options)
	})
	if s.err != nil {
		tb.Fatal(s.err)
	}
	if err := s.plane.Err(); err != nil {
		tb.Fatalf("the shared control plane does not run any more: %v", err)
	}
	return s.plane
}

// Main runs the tests of a package and then stops the control plane, if it was
// started. It returns the exit code for os.Exit.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	s.once.Do(func() {}) // from here on it is not started any more
	if s.plane == nil {
		return code
	}
	if err := s.plane.Stop(); err != nil {
		os.Stderr.WriteString("stopping the shared control plane: " + err.Error() + "\n")
		return max(code, 1)
	}
	return code
}
