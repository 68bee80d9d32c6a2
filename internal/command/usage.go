// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// checkUsage makes all commands treat wrong usage alike: it ends with the exit code for it, and with
// where to find help. Wrong are flags and arguments that the command does not take, and the name of
// a file that does not exist.
func checkUsage(cmd *cobra.Command) {
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = unknownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageOf(cmd, suggestFlag(cmd, err)) })
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return usageOf(cmd, check(cmd, args)) }
	}
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := work(cmd, args)
			if missing := (*fs.PathError)(nil); errors.As(err, &missing) && errors.Is(missing, fs.ErrNotExist) && names(cmd, args, missing.Path) {
				return usageOf(cmd, err)
			}
			return err
		}
	}
}

// usageOf makes an error one of wrong usage.
func usageOf(cmd *cobra.Command, err error) error {
	switch {
	case err == nil:
		return nil
	case cmd.Annotations[ownCodes] != "": // code 2 means something else
		return &exitError{code: exitFound, err: &usageMistake{err}}
	}
	return usageError(err)
}

// names reports whether a command line has a path as an argument or the value of a flag.
func names(cmd *cobra.Command, args []string, path string) bool {
	all := slices.Clone(args)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			all = append(all, list.GetSlice()...)
			return
		}
		all = append(all, f.Value.String())
	})
	return slices.ContainsFunc(all, func(name string) bool { return filepath.Clean(name) == filepath.Clean(path) })
}

// anyNumber is for commands that take any number of arguments.
const anyNumber = -1

// arguments returns a check of the number of arguments.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		_, takes, _ := strings.Cut(cmd.Use, " ")
		switch {
		case len(args) < least:
			return fmt.Errorf("an argument is missing: %s %s", cmd.CommandPath(), takes)
		case most == 0 && len(args) > 0:
			return fmt.Errorf("unexpected argument %q: %s takes none", args[0], cmd.CommandPath())
		case most != anyNumber && len(args) > most:
			return fmt.Errorf("unexpected argument %q: %s %s", args[most], cmd.CommandPath(), takes)
		}
		return nil
	}
}

// packagePatterns checks that the directories exist that patterns for the go command begin with,
// which reports others as packages that do not compile.
func packagePatterns(_ *cobra.Command, patterns []string) error {
	for _, pattern := range patterns {
		dir := strings.TrimSuffix(filepath.ToSlash(pattern), "/...")
		if !strings.HasPrefix(dir, ".") && !filepath.IsAbs(dir) || dir == "..." {
			continue // an import path
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: no such file or directory", dir)
		}
	}
	return nil
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
	return errors.New(text)
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
