// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// Mistakes are refused before anything is started, with what is wrong and what is wanted.
func TestWrongUsage(t *testing.T) {
	tests := []struct{ args, want string }{
		{"-objects 0", "-objects 0: want 1 to 1000"},
		{"-example 09_none", "want all, or some of 01_cronjob,02_simple,03_rwexternal,04_website,05_user,06_stream"},
		{"-replicas 3", "want 1 or 2"},
		{"-replicas 2", "other examples than 01_cronjob"},
		{"-times 0", "want at least 1"},
		{"-example 05_user -replicas 2 -actions pause=1", "unknown action"},
		{"-kill-every 8s", "want two durations"},
		{"-kill-every 8s,5s", "the shorter duration first"},
		{"-every 1500ms", "whole seconds"},
		{"-every 2s", "at least 5s"},
		{"-quiet -1s", "must not be negative"},
		{"-logs /no/such/directory", "want an existing directory"},
		{"-sed 1", "flag provided but not defined: -sed"},
		{"01_cronjob", `unexpected argument "01_cronjob"`},
	}
	for _, test := range tests {
		var out, errOut strings.Builder
		if code := run(t.Context(), strings.Fields(test.args), &out, &errOut); code != exitUsage || !strings.Contains(errOut.String(), test.want) {
			t.Errorf("%s: exit code %d and %q, want %d and %q", test.args, code, errOut.String(), exitUsage, test.want)
		}
	}
}

func TestHelp(t *testing.T) {
	var out, errOut strings.Builder
	if code := run(t.Context(), []string{"--help"}, &out, &errOut); code != exitKept || errOut.Len() > 0 {
		t.Errorf("exit code %d and %q on standard error, want 0 and nothing", code, errOut.String())
	}
	for _, want := range []string{"soak -example 01_cronjob", "-kill-every", "default 10m0s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not say %q:\n%s", want, out.String())
		}
	}
}

// The command that is printed does the same again.
func TestCommandRepeats(t *testing.T) {
	o, err := parseOptions(strings.Fields("-example 02_simple -objects 3 -chaos 90s -kill-every 1s,2s"), io.Discard)
	must(t, err)
	_, args, _ := strings.Cut(o.command(o.examples[0]), "soak ")
	again, err := parseOptions(strings.Fields(args), io.Discard)
	must(t, err)
	if o.seed == 0 || again.seed != o.seed || again.kills != o.kills || again.chaos != 90*time.Second || again.objects != 3 || len(again.examples) != 1 {
		t.Errorf("%s gives %+v, want %+v", args, again, o)
	}
}

// What is interrupted before it has begun is not a success.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut strings.Builder
	if code := run(ctx, []string{"-example", "02_simple"}, &out, &errOut); code != exitViolated {
		t.Errorf("exit code %d, want %d: %s", code, exitViolated, errOut.String())
	}
}
