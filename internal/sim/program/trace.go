// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"

	simtrace "github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
)

// A trace is what happened in one run, in real time.
type trace struct{ *simtrace.Trace }

func newTrace() *trace { return &trace{simtrace.New()} }

// all returns the lines.
func (t *trace) all() []string { return strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n") }
