// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// shared serves the tests that need all parts and do not stop anything.
var shared = planetest.Shared{Options: controlplane.Options{Parts: controlplane.AllParts, Nodes: 2, CRDs: []string{"testdata/crds"}}}

// childVariable makes this test binary the child that a test kills.
const childVariable = "CTRLKIT_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		os.Exit(beChild(kind))
	}
	log.SetLogger(logr.New(log.NullLogSink{}))              // controller-runtime complains without one
	if err := os.Unsetenv(planetest.Variable); err != nil { // these tests need their own
		panic(err)
	}
	flag.Parse()
	if testing.Short() { // the examples start control planes
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	os.Exit(shared.Main(m))
}

// starts marks a test that starts a control plane, and runs it beside the others that do.
func starts(t *testing.T) {
	t.Helper()
	rings.Test(t, "starts a control plane")
	t.Parallel()
}
