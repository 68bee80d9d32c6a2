// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/internal/command"
)

func TestMain(m *testing.M) {
	main := func() { os.Exit(command.Main()) }
	testscript.Main(m, map[string]func(){"ctrlkit": main})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
