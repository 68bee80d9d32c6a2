// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A simulation that was stopped is not one that is missing.
func TestTableOfSimulations(t *testing.T) {
	const failed = "go test has failed"
	for _, tt := range []struct{ name, file, want string }{
		{"none was run", "", "no simulation was run: does a test of these packages call sim.Run?\n"},
		{failed, "", "no simulation was run: go test failed before one had begun, and says why above\n"},
		{
			failed, `{"Test":"TestA","Done":9,"Summary":"9 plans"}` + "\n",
			`
simulation   plans  findings  time
TestA            9         0  0s
go test failed, although no simulation has findings: another test of these packages failed, see above; --run leaves it out
`,
		},
		{
			"one has ended, and one was stopped",
			`{"Test":"TestA","Done":3,"Total":9}` + "\n" + `{"Test":"TestA","Done":9,"Total":9,"Bad":1,"Summary":"9 plans\nleft out","Elapsed":1200000000}` + "\n" +
				`{"Test":"TestLong","Done":2,"Total":7}` + "\n" + `{"Test":"TestLong","Done":4,"Total":7}` + "\n" + `{"Test":"TestLong","Found":"a leak"}` + "\n" + `{"Test":"TestLong","Do`,
			`
simulation   plans  findings  time
TestA            9         1  1.2s
          left out
TestLong         4         0  stopped after 4 of 7 plans
`,
		},
		{
			"one was run twice",
			`{"Test":"TestA","Done":9,"Summary":"9 plans"}` + "\n" + `{"Test":"TestA","Done":9,"Summary":"9 plans"}` + "\n",
			`
simulation   plans  findings  time
TestA            9         0  0s
TestA            9         0  0s
`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "progress")
			must(t, os.WriteFile(file, []byte(tt.file), 0o600))
			done, cancel := context.WithCancel(t.Context())
			cancel()
			var shown, got strings.Builder
			table(&got, showProgress(done, newProgressWriter(&shown), file), tt.name == failed)
			if got.String() != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got.String(), tt.want)
			}
		})
	}
}
