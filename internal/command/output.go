// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A choice is the value of a flag that takes one of a few. The first one is the default.
type choice struct {
	value string
	of    []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "FORMAT" }

// Set takes a value. An error of it is one of usage, before the command begins.
func (c *choice) Set(value string) error {
	if !slices.Contains(c.of, value) {
		return fmt.Errorf("want %s", c.all())
	}
	c.value = value
	return nil
}

// all returns the values: text, yaml or json.
func (c *choice) all() string {
	last := len(c.of) - 1
	return strings.Join(c.of[:last], ", ") + " or " + c.of[last]
}

// outputFlag adds -o, by which every command that prints something for programs does so as -o json.
func outputFlag(cmd *cobra.Command, formats ...string) *choice {
	c := &choice{formats[0], formats}
	cmd.Flags().VarP(c, "output", "o", "print "+c.all())
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// alsoAs keeps an earlier spelling of -o working, which no help shows.
func (c *choice) alsoAs(cmd *cobra.Command, flag string) {
	cmd.Flags().Var(c, flag, "")
	_ = cmd.Flags().MarkHidden(flag)
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(c.of, cobra.ShellCompDirectiveNoFileComp))
}
