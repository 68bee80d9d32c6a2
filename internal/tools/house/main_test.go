// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// inRoot has a test run in the root of the repository.
func inRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../../..")
	rings.Reads(t, ".")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
