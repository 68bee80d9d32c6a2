// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
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
writes Go from it. "ctrlkit run" builds an operator and runs it in a real Kubernetes control plane, which needs Go
and no other program, or in memory.`,
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
		newFixCommand(),
		newFmtCommand(),
		newGenerateCommand(),
		newGraphCommand(),
		newInitCommand(),
		newOrphansCommand(),
		newPlanCommand(),
		newDiffCommand(),
		newImportCommand(),
		newRBACCommand(),
		newRecordCommand(),
		newReplayCommand(),
		newRunCommand(),
		newSimCommand(),
		newSuperviseCommand(),
		newTopCommand(),
		newVersionCommand(),
		newVetCommand(),
		newViewCommand(),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	started = new(bool)
	walk(root, func(cmd *cobra.Command) {
		separateUsageErrors(cmd, started)
		cmd.Long = reflow(cmd.Long, helpWidth)
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ", fmt.Sprintf("Flags.FlagUsagesWrapped %d ", helpWidth)))
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
	cmd.SetFlagErrorFunc(suggestFlag)
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

// suggestFlag adds the flag that a misspelt one most likely means to the error about it.
func suggestFlag(cmd *cobra.Command, err error) error {
	unknown := (*pflag.NotExistError)(nil)
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near, ok := printable.Near(unknown.GetSpecifiedName(), names); ok {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// helpWidth is how wide help is, in characters.
const helpWidth = 100

// reflow breaks the lines of paragraphs anew. What is indented stays as it is.
func reflow(text string, width int) string {
	var b strings.Builder
	column := 0 // of the paragraph, 0 outside of one
	for _, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == ' ' {
			if column > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line + "\n")
			column = 0
			continue
		}
		for _, word := range strings.Fields(line) {
			switch {
			case column == 0:
			case column+1+len(word) > width:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
	}
	return strings.TrimRight(b.String(), "\n")
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
