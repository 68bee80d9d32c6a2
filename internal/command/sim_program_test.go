// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// The command that runs a plan again gives the operator the same environment and the same time.
func TestAgainWithTheSameFlags(t *testing.T) {
	f := &simProgram{}
	cmd := &cobra.Command{Use: "sim", RunE: func(cmd *cobra.Command, args []string) error {
		plan := fault.Plan{Faults: []fault.Fault{{Kind: fault.CrashAfterWrite, At: 2}}}
		want := `ctrlkit sim --program ./manager -f 'my samples' --plan 'crash after write 2' '--env=A=b c' --env=D=e --namespace=shop --settle=15s -- --leader-elect=false`
		if got := f.again(cmd.Flags(), args, plan, ""); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		return nil
	}}
	f.declare(cmd)
	cmd.SetArgs([]string{"--program", "./manager", "-f", "my samples", "--env", "A=b c", "--env", "D=e", "-n", "shop", "--settle", "15s", "--", "--leader-elect=false"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
}
