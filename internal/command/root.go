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

// newRoot also returns a variable that becomes true when a command starts its work. Errors before
// that are usage errors.
func newRoot() (root *cobra.Command, started *bool) {
	root = &cobra.Command{
		Use:   "ctrlkit",
		Short: "Write, check and run Kubernetes operators",
		Long: `ctrlkit writes, checks and runs Kubernetes operators.

A small language (files named *.ctrlkit) describes the objects that an operator reads and manages; "ctrlkit generate"
writes Go from it. "ctrlkit run" builds an operator and runs it in a real Kubernetes control plane, which needs nothing
but Go.`,
		Example: `  ctrlkit generate ./...                 write the Go for all *.ctrlkit files below this directory
  ctrlkit run ./examples/01_cronjob      build and run an operator, and watch its objects
  ctrlkit run --help                     show the help of a command`,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		newCheckCommand(),
		newControlPlaneCommand(),
		newCreateCommand(),
		newExplainCommand(),
		newFmtCommand(),
		newGenerateCommand(),
		newGraphCommand(),
		newInitCommand(),
		newOrphansCommand(),
		newRBACCommand(),
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

// unknownCommand returns an error for arguments that do not name a subcommand, with similar names.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + quotedAlternatives(near) + "?"
	}
	return fmt.Errorf("%s", text)
}

// quotedAlternatives formats names as alternatives: "a", "b" or "c".
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

// separateUsageErrors separates errors that occur before cmd starts its work (unknown flags,
// missing arguments, flags that exclude each other) from those of the work itself: the former end
// with the exit code for wrong usage.
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

// indent indents all lines of text by two spaces, like the examples in help.
func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// walk calls visit for cmd and all commands below it.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, child := range cmd.Commands() {
		walk(child, visit)
	}
}
