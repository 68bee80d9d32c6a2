// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"io"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/scaffold"
)

// A command that was built from a downloaded module requires its version, any other the checkout.
func TestRequirements(t *testing.T) {
	here := checkout()
	released := debug.Module{Version: "v0.1.0", Sum: "h1:"}
	for _, tt := range []struct {
		name              string
		main              debug.Module
		replace, checkout string
		want              scaffold.Requirements
		err               string
	}{
		{name: "released", main: released, checkout: here, want: scaffold.Requirements{Ctrlkit: "v0.1.0"}},
		{name: "released, with a flag", main: released, replace: here, want: scaffold.Requirements{Ctrlkit: "v0.0.0", Replace: here}},
		{name: "go build", main: debug.Module{Version: "v0.0.0-2026+dirty"}, checkout: here, want: scaffold.Requirements{Ctrlkit: "v0.0.0", Replace: here}},
		{name: "go tool, replaced", main: debug.Module{Version: "v0.0.0", Sum: "h1:", Replace: &debug.Module{Path: "../ctrlkit"}}, checkout: here, want: scaffold.Requirements{Ctrlkit: "v0.0.0", Replace: here}},
		{name: "-trimpath", main: debug.Module{Version: "(devel)"}, err: "name a checkout with --ctrlkit-replace"},
		{name: "archive of a release", main: debug.Module{Version: "v0.1.0"}, want: scaffold.Requirements{Ctrlkit: "v0.1.0"}},
		{name: "archive of a snapshot", main: debug.Module{Version: "v0.1.1-0.20261129032805-ffe0769d99f5"}, err: "name a checkout with --ctrlkit-replace"},
		{name: "archive with changes", main: debug.Module{Version: "v0.1.0+dirty"}, err: "name a checkout with --ctrlkit-replace"},
		{name: "go build of a tag", main: debug.Module{Version: "v0.1.0"}, checkout: here, want: scaffold.Requirements{Ctrlkit: "v0.0.0", Replace: here}},
		{name: "wrong directory", main: released, replace: t.TempDir(), err: "it is no checkout of ctrlkit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := requirementsFrom(&debug.BuildInfo{Main: tt.main}, tt.replace, tt.checkout)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

// In a terminal there is a question for what no flag gives, again if the answer is wrong. An empty
// answer takes the default, and so does the end of the input.
func TestQuestions(t *testing.T) {
	var out strings.Builder
	ask := &asker{
		interactive: true, ctx: t.Context(), out: &out, changed: func(flag string) bool { return flag == "group" },
		in: bufio.NewReader(strings.NewReader("bad kind\nPage\n\n")),
	}
	f := &scaffoldFlags{api: scaffold.API{Group: "web"}}
	ask.question(&f.api.Kind, "kind", "Kind", "Guestbook", func() error { return f.api.CheckKind() })
	f.questions(ask, "example.com", "other", func() string { return "v1" })
	if got, want := f.api, (scaffold.API{Group: "web", Version: "v1", Kind: "Page", Children: "deployment"}); got != want || ask.err != nil {
		t.Errorf("got %+v, %v, want %+v", got, ask.err, want)
	}
	want := "Kind [Guestbook] (--kind):   --kind \"bad kind\": want CamelCase, such as BadKind\nKind [Guestbook] (--kind): Version [v1] (--version): " +
		"Children of each object: deployment, configmap, external or none [deployment] (--children): "
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An interrupt ends a question, although nothing is typed.
func TestInterruptedQuestion(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	typed, out := io.Pipe()
	defer out.Close() //nolint:errcheck // nothing is written
	ask := &asker{interactive: true, ctx: ctx, in: bufio.NewReader(typed), out: io.Discard, changed: func(string) bool { return false }}
	kind, version := "", ""
	ask.question(&kind, "kind", "Kind", "Page", nil)
	ask.question(&version, "version", "Version", "v1", nil)
	if exitCode(ask.err) != exitInterrupted || version != "" {
		t.Errorf("got %v and the version %q, want the end", ask.err, version)
	}
}
