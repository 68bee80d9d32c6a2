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
	argv := os.Args[1:]
	if argv[0] == "--isolated" {
		isolation, err := ParseIsolation(argv[1])
		if err == nil {
			err = isolation.Enter(os.Stdout)
		}
		if err != nil {
			panic(err)
		}
		argv = argv[2:]
	}
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
