// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/internal/dsl/checktest"
)

// TestDocuments runs the stories of fmt and check, each in a directory with the Go module
// controller-kit-demo.
func TestDocuments(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/documents",
		Setup: func(env *testscript.Env) error {
			// The go command finds modules and compiled packages where this test has them from.
			for _, name := range []string{"HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY"} {
				if value, ok := os.LookupEnv(name); ok {
					env.Setenv(name, value)
				}
			}
			return checktest.WriteModule(env.WorkDir)
		},
	})
}
