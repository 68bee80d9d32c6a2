// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// New returns the root command with all its subcommands.
func New() *cobra.Command {
	root, _ := newRoot()
	return root
}

// newRoot also returns where it is noted that a command began its work: errors before that are errors of usage.
func newRoot() (root *cobra.Command, started *bool) {
	root = &cobra.Command{
		Use:   "ctrlkit",
		Short: "Write, check and run Kubernetes operators",
		Long: `ctrlkit writes, checks and runs Kubernetes operators.

An operator is described in a small language (files named *.ctrlkit), from which Go is generated; "ctrlkit run"
builds it and runs it against a real Kubernetes API server that needs nothing but Go.`,
		Example: `  ctrlkit generate ./...                 write the Go for every *.ctrlkit file below this directory
  ctrlkit run ./examples/01_cronjob      build and run an operator, and watch what it does
  ctrlkit run --help                     everything about a command`,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		newCheckCommand(),
		newControlPlaneCommand(),
		newExplainCommand(),
		newFmtCommand(),
		newGenerateCommand(),
		newGraphCommand(),
		newRunCommand(),
		newSimCommand(),
		newSuperviseCommand(),
		newVersionCommand(),
		newVetCommand(),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	started = new(bool)
	walk(root, func(cmd *cobra.Command) { separateUsageErrors(cmd, started) })
	return root, started
}

// unknownCommand refuses arguments that name no subcommand, and suggests near names.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + quotedAlternatives(near) + "?"
	}
	return fmt.Errorf("%s", text)
}

// quotedAlternatives writes names as a choice: "a", "b" or "c".
func quotedAlternatives(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// separateUsageErrors makes everything that goes wrong before cmd starts to work (unknown flags, missing arguments,
// flags that exclude each other) end with the exit code for wrong usage, and leaves the errors of the work itself as
// they are.
func separateUsageErrors(cmd *cobra.Command, started *bool) {
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = unknownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	switch work, simpleWork := cmd.RunE, cmd.Run; {
	case work != nil:
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return work(cmd, args)
		}
	case simpleWork != nil:
		cmd.Run = func(cmd *cobra.Command, args []string) {
			*started = true
			simpleWork(cmd, args)
		}
	}
}

// indent moves every line of text to the right, as examples stand in help.
func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// walk calls visit for cmd and for every command below it.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, child := range cmd.Commands() {
		walk(child, visit)
	}
}
