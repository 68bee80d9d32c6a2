// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"testing"
)

// The tests read the repository, and name its files, from its root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	m.Run()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
