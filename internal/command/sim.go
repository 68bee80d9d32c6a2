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
		Short: "Run the simulations of a package: crash, lag and disturb its operator everywhere",
		Long: `sim runs the tests of packages that call sim.Run, shows how far they are, and prints a table of what was found.

It is go test with progress: the same tests run with go test alone, in CI too.

Exit codes: 0 nothing was found, 1 something was, 2 wrong usage.`,
		Example: `  ctrlkit sim ./...                                       the simulations of all packages
  ctrlkit sim ./internal/controller --run TestBackup      one of them
  ctrlkit sim ./internal/controller --run TestBackup --plan 'crash after write 3'   one plan, with all that happened`,
		RunE: func(cmd *cobra.Command, packages []string) error {
			if plan != "" && run == "" {
				return &exitError{2, fmt.Errorf("--plan runs one plan of one test: name the test with --run")}
			}
			if len(packages) == 0 {
				packages = []string{"."}
			}
			return runSimulations(cmd, packages, run, plan, timeout)
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "run only the tests whose names match this regular `expression`")
	cmd.Flags().StringVar(&plan, "plan", "", "run only this `plan`, and print what happened")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Minute, "give up after this `time`")
	return cmd
}

// progressVariable is sim.ProgressVariable. The package itself would make every command start slower.
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
		return fmt.Errorf("making a place for the progress: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the temporary directory
	file := filepath.Join(dir, "progress")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return fmt.Errorf("making a place for the progress: %w", err)
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

// showProgress prints what comes into the file until ctx is done, and returns how each test ended.
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
	rest := ""
	for last := false; ; {
		text, err := lines.ReadString('\n')
		rest += text
		if err == nil {
			var p progress
			if json.Unmarshal([]byte(rest), &p) == nil {
				if p.Summary != "" {
					ended = append(ended, p)
				} else {
					fmt.Fprintf(w, "%s: %d of %d plans, %d with findings\n", p.Test, p.Done, p.Total, p.Bad)
				}
			}
			rest = ""
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

// table prints how the simulations ended.
func table(w io.Writer, ended []progress) {
	if len(ended) == 0 {
		fmt.Fprintln(w, "no simulation has come to its end: does a test of these packages call sim.Run?")
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
