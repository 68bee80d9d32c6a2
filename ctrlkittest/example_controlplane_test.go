// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
)

// A test with a control plane of its own, with controllers and Nodes.
func ExampleStartControlPlane() {
	_ = func(t *testing.T) {
		plane := ctrlkittest.StartControlPlane(t, controlplane.Options{
			Parts: controlplane.AllParts,
			CRDs:  []string{"config/crd"},
		})
		_ = plane.Config() // for the manager under test
	}
}

// One control plane serves all tests of a package. It runs from the first call of ForTest until
// Main has run all tests.
func ExampleSharedControlPlane() {
	shared := ctrlkittest.SharedControlPlane{
		Options: controlplane.Options{Parts: controlplane.PartControllerManager},
	}
	_ = func(m *testing.M) int { // in TestMain: os.Exit(shared.Main(m))
		return shared.Main(m)
	}
	_ = func(t *testing.T) {
		plane := shared.ForTest(t)
		if _, err := plane.AddUser("jane"); err != nil {
			t.Fatal(err)
		}
	}
}
