package controlplane

import (
	"os"
	"testing"
)

// shared serves the tests that need all parts and do not stop anything.
var shared = Shared{Options: Options{Parts: Everything, Nodes: 2, CRDs: []string{"testdata/crds"}}}

// childVariable makes this test binary the child that a test kills.
const childVariable = "CTRLKIT_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		os.Exit(beChild(kind))
	}
	os.Exit(shared.Main(m))
}
