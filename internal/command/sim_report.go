// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	simreport "github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// newSimReportCommand returns the command that prints and merges reports.
func newSimReportCommand() *cobra.Command {
	var jsonFile, htmlFile string
	var output *choice
	full := simreport.DefaultFull
	cmd := &cobra.Command{
		Use:   "report [flags] FILE...",
		Short: "Print what simulations have found, from their JSON files",
		Long: `Report reads files that ctrlkit sim -o json or go test -sim.json have written, and prints them as one report.
Shards of one simulation are merged: the report is the one that a single machine would have printed.

Exit codes: 0 no findings, 1 findings, 2 wrong usage.`,
		Example: `  ctrlkit sim report report.json                          print a report
  ctrlkit sim report shard-*.json --html report.html      merge shards into a page`,
		Args: arguments(1, anyNumber),
		RunE: func(cmd *cobra.Command, files []string) error {
			d, err := mergeReports(files)
			if err != nil {
				return usageError(err)
			}
			if err := writeReports(d, jsonFile, htmlFile); err != nil {
				return problemError(err)
			}
			if output.value == "json" {
				err = d.Write(cmd.OutOrStdout())
			} else {
				err = d.Text(cmd.OutOrStdout(), simreport.Style{Color: isTerminal(cmd.OutOrStdout()) && os.Getenv("NO_COLOR") == "", Full: full})
			}
			if err != nil {
				return problemError(err)
			}
			if d.Bad() {
				return &exitError{code: exitFound}
			}
			return nil
		},
	}
	output = outputFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&jsonFile, "json", "", "")
	_ = cmd.Flags().MarkHidden("json")
	cmd.Flags().StringVar(&htmlFile, "html", "", "write the merged report to this `file`, as a page of HTML")
	cmd.Flags().IntVar(&full, "full", full, "print so many findings of each simulation in full, the worst ones")
	return cmd
}

func isTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// fileOf returns the file that is written to, if it is one, for a command that draws on terminals:
// its escape sequences pass from now on.
func fileOf(w io.Writer) (*os.File, bool) {
	if out, ok := w.(*printable.Writer); ok {
		return out.Draws()
	}
	f, ok := w.(*os.File)
	return f, ok
}

// unchanged returns what is behind a writer, for the output of other programs, for source, and for
// what makes its text printable itself.
func unchanged(w io.Writer) io.Writer {
	if out, ok := w.(*printable.Writer); ok {
		return out.Unchanged()
	}
	return w
}
