// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
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
		if got := f.again(cmd.Flags(), args, plan); got != want {
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
		{simProgram{pairs: 20}, simOptions{swarm: true}, true},
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

// A swarm and a shard of plans are for processes, too. Budgets are those of virtual time, and ten minutes
// if none is given.
func TestProgramHasTheChoiceOfSim(t *testing.T) {
	for want, o := range map[string]simOptions{
		"10m, shard 2/4 of plans":   {shard: "2/4"},
		"1h, shard 1/2 of a swarm":  {swarm: true, budget: "1h", shard: "1/2"},
		"quick, shard 3/3 of plans": {budget: "quick", shard: "3/3"},
	} {
		options := &program.Options{}
		if err := (&simProgram{}).pick(options, o); err != nil {
			t.Fatal(err)
		}
		of := "plans"
		if options.Endless && options.Only {
			of = "a swarm"
		}
		if got := fmt.Sprintf("%s, shard %s of %s", options.Budget, options.Shard, of); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for want, o := range map[string]simOptions{
		"a swarm has no end": {swarm: true, budget: "smoke"}, "--swarm draws plans of faults": {swarm: true, plan: "crash after write 1"},
		"want one like 2/4": {shard: "5/4"}, "or a time such as 90s": {budget: "tiny"},
	} {
		if err := (&simProgram{}).pick(&program.Options{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got the error %v, want %q", o, err, want)
		}
	}
}
