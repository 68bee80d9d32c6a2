// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"log"
	"os"

	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A program that comments on a pull request needs, of each finding, the line of code, what is wrong,
// and the command that shows it.
func Example() {
	f, err := os.Open("testdata/report.json") // of go test -sim.json
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	d, err := report.Read(f)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range d.Simulations {
		for _, finding := range s.Worst() {
			e := finding.Example
			fmt.Printf("%s: %s: %s (%d plans)\n  %s\n", e.Write.Site(), finding.Class, finding.Oracle, len(finding.Plans), e.Again)
		}
	}
	// Output:
	// controllers/bucket.go:88: leak or loss: no-leak (4 plans)
	//   go test -sim.plan='restart 4 events in the past of widgets after write 2'
	// controllers/config.go:20: foreign object: foreign-untouched (2 plans)
	//   go test -sim.plan='occupy the name before write 4'
	// controllers/status.go:40: cosmetic: transition-time (22 plans)
	//   go test -sim.plan='crash after write 1'
}
