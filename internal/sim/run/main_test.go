// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// superviseVariable makes the test binary a supervisor of the program in its arguments, with this
// grace.
const superviseVariable = "CTRLKIT_TEST_SUPERVISE"

// probeArgument makes the test binary a program that says what it reaches.
const probeArgument = "probe"

func TestMain(m *testing.M) {
	text := os.Getenv(superviseVariable)
	if len(os.Args) > 1 && os.Args[1] == probeArgument {
		os.Exit(probe(os.Args[2:]))
	}
	if text == "" {
		os.Exit(m.Run())
	}
	grace, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	code, err := supervisor.Supervise(os.Stdin, os.Args[1:], grace, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(127)
	}
	os.Exit(code)
}
