// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/sim/run"
)

const (
	superviseName = "supervise-operator"

	// superviseGrace is how long an operator may take to end before it is killed.
	superviseGrace = 10 * time.Second
)

// newSuperviseCommand returns a hidden command. "ctrlkit run" starts the operator through it, with
// a pipe as its standard input, so that the operator ends when "ctrlkit run" does, even if that is
// killed.
func newSuperviseCommand() *cobra.Command {
	isolated := ""
	cmd := &cobra.Command{
		Use:    superviseName + " -- PROGRAM [ARGUMENTS]",
		Short:  "Run a program until standard input ends",
		Hidden: true,
		Args:   arguments(1, anyNumber),
		RunE: func(cmd *cobra.Command, args []string) error {
			signal.Ignore(os.Interrupt) // "ctrlkit run" handles it
			if isolated != "" {
				isolation, err := run.ParseIsolation(isolated)
				if err == nil {
					err = isolation.Enter(unchanged(cmd.OutOrStdout()))
				}
				if err != nil {
					return err
				}
			}
			code, err := run.Supervise(cmd.InOrStdin(), args, superviseGrace, unchanged(cmd.OutOrStdout()), unchanged(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			if code != 0 {
				return &exitError{code: max(code, exitFound)}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&isolated, "isolated", "", "reach only this `SOCKET,ADDRESS`")
	return cmd
}
