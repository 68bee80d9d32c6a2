// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

// Name is the first argument of a process that is a supervisor. After it come those of
// [Isolation.Arguments], if the program is isolated, "--", and the command line of the program.
const Name = "supervise-operator"

// grace is how long an operator may take to end before it is killed.
const grace = 10 * time.Second

// A program that has this package is its own supervisor. That is decided here, and not in its main:
// the packages that need more than this one, such as those of Kubernetes, are initialized later, which
// takes more of a processor at each start than all that a supervisor does.
func init() {
	if len(os.Args) > 1 && os.Args[1] == Name {
		os.Exit(run(os.Args[2:]))
	}
}

func run(arguments []string) (code int) {
	signal.Ignore(os.Interrupt) // who has started it handles it
	dash := slices.Index(arguments, "--")
	if dash < 0 || dash+1 == len(arguments) {
		return fail(fmt.Errorf("%s: no program", Name))
	}
	if i := slices.Index(arguments[:dash], isolated); i >= 0 {
		isolation, err := parseIsolation(arguments[i+1])
		if err == nil {
			err = isolation.enter(os.Stdout)
		}
		if err != nil {
			return fail(err)
		}
	}
	code, err := Supervise(os.Stdin, arguments[dash+1:], grace, os.Stdout, os.Stderr)
	if err != nil {
		return fail(err)
	}
	return code
}

func fail(err error) (code int) {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
