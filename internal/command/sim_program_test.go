// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/program"
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

// Pairs are plans beside those with one fault, so that they have no place where these are not run.
func TestPairsHaveTheirPlace(t *testing.T) {
	for _, test := range []struct {
		flags   simProgram
		options simOptions
		fails   bool
	}{
		{simProgram{pairs: 20}, simOptions{seed: 3}, false},
		{simProgram{pairs: 0}, simOptions{seed: 3, plan: "crash after write 1; crash after write 2"}, false},
		{simProgram{pairs: 20, transitions: "."}, simOptions{}, true},
		{simProgram{pairs: 20}, simOptions{plan: "crash after write 1"}, true},
		{simProgram{pairs: -1}, simOptions{}, true},
	} {
		options := &program.Options{}
		err := test.flags.pick(options, test.options)
		if test.fails != (err != nil && strings.Contains(err.Error(), "--pairs N adds plans to those with one fault")) {
			t.Errorf("%+v, %+v: got the error %v", test.flags, test.options, err)
		}
		if err == nil && (options.Pairs != test.flags.pairs || options.Seed != 3 || options.Plan != nil && len(options.Plan.Faults) != 2) {
			t.Errorf("%+v: got %+v", test.flags, options)
		}
	}
}
