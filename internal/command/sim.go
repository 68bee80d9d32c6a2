// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// newSimCommand returns the command that runs the simulations of packages.
func newSimCommand() *cobra.Command {
	var run, plan string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "sim [flags] [PACKAGE...]",
		Short: "Run the simulations of an operator, with faults at each of its writes and reads",
		Long: `Sim runs the tests of packages that call sim.Run, shows their progress, and prints a table of their findings.

The same tests run with go test, without the progress and the table.

Exit codes: 0 no findings, 1 findings, 2 wrong usage.`,
		Example: `  ctrlkit sim ./...                                       the simulations of all packages
  ctrlkit sim ./internal/controller --run TestBackup      one of them
  ctrlkit sim ./internal/controller --run TestBackup --plan 'crash after write 3'   one plan, with its trace`,
		RunE: func(cmd *cobra.Command, packages []string) error {
			if plan != "" && run == "" {
				return &exitError{2, fmt.Errorf("--plan needs --run: a plan belongs to one test")}
			}
			if len(packages) == 0 {
				packages = []string{"."}
			}
			return runSimulations(cmd, packages, run, plan, timeout)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "run only the tests whose names match this regular `expression`")
	cmd.Flags().StringVar(&plan, "plan", "", "run only this `plan`, and print its trace")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Minute, "give up after this `time`")
	return cmd
}

// progressVariable is sim.ProgressVariable. Importing package sim would slow down the start of all
// commands.
const progressVariable = "CTRLKIT_SIM_PROGRESS"

// progress is what sim.Run reports while it works.
type progress struct {
	Test             string
	Done, Total, Bad int
	Summary          string
	Elapsed          time.Duration
}

func runSimulations(cmd *cobra.Command, packages []string, run, plan string, timeout time.Duration) error {
	dir, err := os.MkdirTemp("", "ctrlkit-sim-")
	if err != nil {
		return fmt.Errorf("creating a file for the progress: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the temporary directory
	file := filepath.Join(dir, "progress")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return fmt.Errorf("creating a file for the progress: %w", err)
	}
	args := append([]string{"test", "-count=1", "-timeout=" + timeout.String()}, packages...)
	if run != "" {
		args = append(args, "-run="+run)
	}
	if plan != "" {
		args = append(args, "-v", "-args", "-sim.plan="+plan)
	}
	test := exec.CommandContext(cmd.Context(), "go", args...)
	test.Env = append(os.Environ(), progressVariable+"="+file)
	test.Stdout, test.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	ctx, cancel := context.WithCancel(cmd.Context())
	shown := make(chan []progress)
	go func() { shown <- showProgress(ctx, cmd.ErrOrStderr(), file) }()
	testErr := test.Run()
	cancel()
	table(cmd.OutOrStdout(), <-shown)
	var exit *exec.ExitError
	switch {
	case errors.As(testErr, &exit):
		return &exitError{code: 1}
	case testErr != nil:
		return fmt.Errorf("running go test: %w", testErr)
	}
	return nil
}

// showProgress prints the progress in the file until ctx is done, and returns the result of each
// test.
func showProgress(ctx context.Context, w io.Writer, file string) []progress {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read from
	lines := bufio.NewReader(f)
	var ended []progress
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	partial := "" // of a line
	for last := false; ; {
		text, err := lines.ReadString('\n')
		partial += text
		if err == nil {
			var p progress
			if json.Unmarshal([]byte(partial), &p) == nil {
				if p.Summary != "" {
					ended = append(ended, p)
				} else {
					fmt.Fprintf(w, "%s: %d of %d plans, %d with findings\n", p.Test, p.Done, p.Total, p.Bad)
				}
			}
			partial = ""
			continue
		}
		if last {
			return ended
		}
		select {
		case <-ctx.Done():
			last = true
		case <-ticker.C:
		}
	}
}

// table prints the results of the simulations.
func table(w io.Writer, ended []progress) {
	if len(ended) == 0 {
		fmt.Fprintln(w, "no simulation has finished: does a test of these packages call sim.Run?")
		return
	}
	width := len("simulation")
	for _, p := range ended {
		width = max(width, len(p.Test))
	}
	fmt.Fprintf(w, "\n%-*s  %6s  %8s  %s\n", width, "simulation", "plans", "findings", "time")
	for _, p := range ended {
		fmt.Fprintf(w, "%-*s  %6d  %8d  %s\n", width, p.Test, p.Total, p.Bad, p.Elapsed.Round(100*time.Millisecond))
		for _, line := range strings.Split(p.Summary, "\n")[1:] {
			fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", width), line)
		}
	}
}
