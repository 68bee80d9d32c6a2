// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
)

// What is watched is printed again when more than its ages differs, and an error only when it is another
// one.
func TestExplainWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		object := func(reason string) *explanation.Explanation {
			return &explanation.Explanation{Now: time.Now(), Resource: "rwexternals.demo.ctrlkit.dev", Object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "demo.ctrlkit.dev/v1", "kind": "RWExternal", "metadata": map[string]any{"name": "waits", "namespace": "default"},
				"status": map[string]any{"conditions": []any{map[string]any{
					"type": "Ready", "status": "False", "reason": reason, "message": "", "lastTransitionTime": began.Add(-time.Hour).UTC().Format(time.RFC3339),
				}}},
			}}}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		script := []string{"First", "First", "Second", "!gone", "!gone", "Second", "Second"}
		var out, errs strings.Builder
		cmd := &cobra.Command{Use: "ctrlkit"}
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetContext(ctx)
		err := (&explainFlags{output: &choice{value: "text"}}).watchExplanation(cmd, func(context.Context) (*explanation.Explanation, error) {
			defer time.Sleep(10 * time.Minute) // ages grow
			if len(script) == 0 {
				cancel(errInterrupted)
				return nil, ctx.Err()
			}
			next := script[0]
			script = script[1:]
			if problem, ok := strings.CutPrefix(next, "!"); ok {
				return nil, errors.New(problem)
			}
			return object(next), nil
		})
		if exitCode(err) != exitInterrupted {
			t.Errorf("it ends with %v", err)
		}
		got := regexp.MustCompile(`(?m)^(RWExternal .*|---|  \w+$)`).FindAllString(out.String(), -1)
		want := []string{
			"RWExternal default/waits has not been ready for 60m", "  First",
			"---", "RWExternal default/waits has not been ready for 80m", "  Second",
			"---", "RWExternal default/waits has not been ready for 110m", "  Second",
		}
		if diff := cmp.Diff(want, got); diff != "" || errs.String() != "ctrlkit: gone\n" {
			t.Errorf("printed (-want +got):\n%s%s\nand %q", diff, out.String(), errs.String())
		}
	})
}

// An error of the first question ends the command, and --all is not watched.
func TestExplainWatchEnds(t *testing.T) {
	t.Setenv("CTRLKIT_ENDPOINT", "")
	d := newDemo(t)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"rwexternal/absent", "--watch", "--endpoint", "none"}, exitFound, "RWExternal default/absent does not exist"},
		{[]string{"--all", "-w"}, exitUsage, "ctrlkit top shows all objects"},
	} {
		if _, code, err := d.run(t, test.args...); code != test.code || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: exit code %d, error %v; want %d, %q", test.args, code, err, test.code, test.want)
		}
	}
}

// Whatever is explained fits the terminal, and a long line is broken instead of cut.
func TestPageFits(t *testing.T) {
	text := "first\n" + strings.Repeat("0123456789", 9) + "\nlast\n"
	if diff := cmp.Diff([]string{"first", "0123456789012345678901234567890123456789", "0123456789012345678901234567890123456789", "0123456789", "last", "Ctrl-C ends"},
		page(text, "Ctrl-C ends", 40, 24)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	lines := page(text, "Ctrl-C ends", 20, 4)
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 20 {
			t.Errorf("a line has more than 20 characters: %s", line)
		}
	}
	if last := lines[len(lines)-1]; len(lines) != 4 || !strings.HasPrefix(last, "4 more lines") {
		t.Errorf("%d lines, the last one is %q", len(lines), last)
	}
}
