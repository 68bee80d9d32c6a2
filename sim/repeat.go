// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// repeat is how a plan is run again.
type repeat struct{ test, dir string }

func (r *repeat) line(plan fault.Plan) string {
	return fmt.Sprintf("go test %s -run '^%s$' -sim.plan='%s'", r.dir, strings.ReplaceAll(r.test, "/", "$/^"), plan)
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
