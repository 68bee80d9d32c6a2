// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// superviseVariable makes the test binary a supervisor of the program in its arguments, with this
// grace.
const superviseVariable = "CTRLKIT_TEST_SUPERVISE"

func TestMain(m *testing.M) {
	text := os.Getenv(superviseVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	grace, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	argv := os.Args[1:]
	if argv[0] == "--" {
		argv = argv[1:]
	}
	code, err := Supervise(os.Stdin, argv, grace, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(127)
	}
	os.Exit(code)
}
