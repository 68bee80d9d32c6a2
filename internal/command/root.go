// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// New returns the root command with all its subcommands, in groups by what a user is about.
func New() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "ctrlkit",
		Short: "Write, check and run Kubernetes operators",
		Long: `ctrlkit writes, checks and runs Kubernetes operators, and explains what they do.

"ctrlkit init" writes an operator, "ctrlkit run" runs any operator in memory or in a real control plane, which needs Go
and no other program, and "ctrlkit explain" says why an object is not ready.`,
		Example: `  ctrlkit init guestbook                 write an operator
  ctrlkit run ./examples/01_cronjob      build and run an operator, and watch its objects
  ctrlkit run --help                     show the help of a command`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return printVersions(cmd.OutOrStdout(), currentVersions(), "text")
			}
			return cmd.Help()
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Flags().BoolVar(&version, "version", false, "print the versions of ctrlkit, of Go and of Kubernetes")
	addGroup(root, "write", "Write an operator:", newInitCommand(), newCreateCommand(), newFixCommand())
	addGroup(root, "run", "Run it:", newRunCommand(), newControlPlaneCommand())
	addGroup(root, "check", "Check it, without a cluster:", newSimCommand(), newVetCommand(), newRBACCommand())
	addGroup(root, "operate", "See what it does, and why:", newExplainCommand(), newTopCommand(), newViewCommand(), newOrphansCommand(), newImportCommand())
	addGroup(root, "change", "Before an upgrade, and after a failure:", newPlanCommand(), newDiffCommand(), newRecordCommand(), newReplayCommand())
	addGroup(root, "language", "The language (*.ctrlkit):", newGenerateCommand(), newCheckCommand(), newFmtCommand(), newGraphCommand(), newLSPCommand())
	root.AddCommand(newVersionCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	walk(root, func(cmd *cobra.Command) {
		if cmd.Name() == "help" && cmd.Parent() == root {
			cmd.Args = helpTopic
		}
		checkUsage(cmd)
		cmd.Long = reflow(cmd.Long, helpWidth)
	})
	cobra.AddTemplateFunc("flagUsages", flagUsages)
	root.SetUsageTemplate(regexp.MustCompile(`\.(\w+Flags)\.FlagUsages`).ReplaceAllString(root.UsageTemplate(), "flagUsages .$1"))
	return root
}

// optional is how pflag shows a flag whose value may be left out: --logs FILE[="-"].
var optional = regexp.MustCompile(`(--[\w-]+) (\S+)\[=[^\]]*\]`)

// flagUsages describes flags, those whose value may be left out as --logs[=FILE].
func flagUsages(set *pflag.FlagSet) string {
	return optional.ReplaceAllStringFunc(set.FlagUsagesWrapped(helpWidth), func(found string) string {
		return fmt.Sprintf("%-*s", len(found), optional.ReplaceAllString(found, "$1[=$2]"))
	})
}

// addGroup adds commands under a title in the help of root.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	root.AddCommand(commands...)
}

// helpTopic checks the arguments of "ctrlkit help", which are the names of a command.
func helpTopic(cmd *cobra.Command, args []string) error {
	found, left, err := cmd.Root().Find(args)
	if err != nil || !found.HasSubCommands() {
		return err
	}
	return unknownCommand(found, left)
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
