// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ctrlkit/ctrlkit/internal/cluster/private"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// The environment variables that stand for flags, for commands that start several test binaries, of
// which some may not know the flags.
const (
	// JSONVariable names the file or directory for -sim.json.
	JSONVariable = "CTRLKIT_SIM_JSON"

	// ShardVariable has the part of the plans for -sim.shard.
	ShardVariable = "CTRLKIT_SIM_SHARD"

	// BudgetVariable has the budget for -sim.budget.
	BudgetVariable = "CTRLKIT_SIM_BUDGET"

	// SwarmVariable has the seed of a swarm that draws plans until the time of the budget is over.
	SwarmVariable = "CTRLKIT_SIM_SWARM"
)

func newSimulation(test, dir string, number int, s *settings) report.Simulation {
	simulation := report.Simulation{Package: dir, Test: test, Number: number, Off: s.off()}
	if !s.Shard.Whole() {
		simulation.Shards = []string{s.Shard.String()}
	}
	return simulation
}

// published has the simulations of this process that have ended.
var published struct {
	sync.Mutex
	document report.Document
}

// publish adds a simulation to the files that the flags name. A file has all simulations of the
// process.
func publish(s report.Simulation) error {
	published.Lock()
	defer published.Unlock()
	d := &published.document
	// A test that runs again, with go test -count, replaces what it has written.
	d.Simulations = slices.DeleteFunc(d.Simulations, func(other report.Simulation) bool {
		return other.Package == s.Package && other.Test == s.Test && other.Number == s.Number
	})
	d.Simulations = append(d.Simulations, s)
	if err := writeFile(cmp.Or(*jsonFlag, os.Getenv(JSONVariable)), ".json", s, d.Write); err != nil {
		return err
	}
	return writeFile(*htmlFlag, ".html", s, d.HTML)
}

// writeFile writes to a file, or to one in a directory that has the name of the package. An empty
// name is none.
func writeFile(name, extension string, s report.Simulation, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); strings.HasSuffix(name, "/") || err == nil && info.IsDir() {
		file := strings.ReplaceAll(s.Package, "/", "_")
		for _, shard := range s.Shards {
			file += "-" + strings.ReplaceAll(shard, "/", "of")
		}
		name = filepath.Join(name, file+extension)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("creating the directory of a report: %w", err)
	}
	if err := private.Write(name, b.Bytes()); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	return nil
}
