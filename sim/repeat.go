// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// repeat is how a plan is run again.
type repeat struct{ test, dir, workload string }

func (r *repeat) line(plan fault.Plan) string {
	line := fmt.Sprintf("go test %s -run '^%s$'", r.dir, strings.ReplaceAll(r.test, "/", "$/^"))
	if r.workload != "" {
		line += " -sim.workload=" + quoted(r.workload)
	}
	for _, f := range flagsOf(flag.CommandLine) {
		if name, value, _ := strings.Cut(f, "="); name != "-test.short" {
			line += " " + name + "=" + quoted(value)
		}
	}
	return line + " -sim.plan=" + quoted(plan.String())
}

// quoted returns a text as a word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// remark says what is being done, where a person waits for it.
func remark(t testing.TB, text string) {
	if testing.Verbose() {
		fmt.Fprintf(os.Stderr, "%s: %s\n", t.Name(), text)
	}
}

// packageOf returns the import path of a caller.
func packageOf(skip int) string {
	pc, _, _, ok := runtime.Caller(skip)
	if !ok {
		return "."
	}
	name := runtime.FuncForPC(pc).Name()
	slash := strings.LastIndex(name, "/")
	dot := strings.Index(name[slash+1:], ".")
	return strings.TrimSuffix(name[:slash+1+dot], "_test")
}
