// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"runtime/debug"
	"strings"
	"testing"

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

// In a terminal there is a question for what no flag gives. An empty answer takes the default.
func TestQuestions(t *testing.T) {
	var out strings.Builder
	ask := &asker{interactive: true, in: bufio.NewReader(strings.NewReader("Page\n\n")), out: &out, changed: func(flag string) bool { return flag == "group" }}
	kind, version, group := "", "", "web"
	ask.question(&kind, "kind", "Kind", "Guestbook")
	ask.question(&group, "group", "Group", "other")
	ask.question(&version, "version", "Version", "v1")
	if kind != "Page" || version != "v1" || group != "web" || ask.err != nil {
		t.Errorf("got %s, %s, %s, %v", kind, version, group, ask.err)
	}
	if want := "Kind [Guestbook] (--kind): Version [v1] (--version): "; out.String() != want {
		t.Errorf("asked %q, want %q", out.String(), want)
	}
}
