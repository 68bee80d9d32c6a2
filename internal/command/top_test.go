// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/journal"
)

var topNow = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// topSummary has two groups in trouble, and one of objects that are ready.
func topSummary() view.Summary {
	object := func(name string) journal.Object {
		return journal.Object{Group: "example.com", Kind: "Database", Namespace: "shop", Name: name}
	}
	queue := 7
	return view.Summary{
		Name: "shop", Total: 216, Matching: 216,
		Kinds: []view.KindCount{{Kind: "Database", Group: "example.com", Total: 216, States: map[view.State]int{view.Failing: 1, view.Waiting: 212, view.Ready: 3}}},
		Groups: []view.Group{
			{State: view.Failing, Reason: "Forbidden", Text: "it may not create services in namespace shop, says the API server", Since: topNow.Add(-90 * time.Second), Count: 1, Objects: []journal.Object{object("odd")}},
			{State: view.Waiting, Reason: "SecretNotFound", Text: "Secret shop/password does not exist", Since: topNow.Add(-12 * time.Minute), Count: 212, Objects: []journal.Object{object("a"), object("b")}},
			{State: view.Ready, Count: 3, Objects: []journal.Object{object("x"), object("y"), object("z")}},
		},
		Controllers: []view.Controller{{Name: "database", Reconciles: 900, Failed: 30, LastMinute: 15, Queue: &queue, HotLoops: []string{"Database shop/odd: hot loop"}}},
	}
}

func TestTopLines(t *testing.T) {
	want := `Database.example.com: 216  ✗ 1 failing  … 212 waiting  ✓ 3 ready
controller database: 15 reconciles in the last minute, 900 in the last hour, 30 failed, 7 in the queue
  ! Database shop/odd: hot loop

✗ 1 failing, the first for 90s: Forbidden: it may not create services in namespace shop, says the API server
    Database shop/odd

… 212 waiting, the first for 12m: SecretNotFound: Secret shop/password does not exist
    Database shop/a, Database shop/b and 210 more

✓ 3 ready
    Database shop/x, Database shop/y, Database shop/z`
	if diff := cmp.Diff(want, strings.Join(topLines(topSummary(), topNow, 0), "\n")); diff != "" {
		t.Errorf("the lines (-want +got):\n%s", diff)
	}
}

// Every picture fits its terminal, and the group that is chosen is in it.
func TestTopFits(t *testing.T) {
	s := &topScreen{sum: topSummary()}
	for i := range 40 {
		s.sum.Groups = append(s.sum.Groups, view.Group{State: view.Ready, Reason: fmt.Sprint("Group", i), Count: 1, Objects: s.sum.Groups[0].Objects})
	}
	for _, size := range [][2]int{{80, 24}, {40, 10}, {200, 60}, {20, 7}} {
		for s.selected = range s.sum.Groups {
			lines := s.lines(topNow, size[0], size[1])
			chosen := 0
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > size[0] {
					t.Fatalf("%v: a line has %d characters: %s", size, n, line)
				}
				if strings.HasPrefix(line, "> ") {
					chosen++
				}
			}
			if len(lines) > size[1] || size[1] > 8 && chosen != 1 {
				t.Fatalf("%v, group %d: %d lines, chosen in %d of them:\n%s", size, s.selected, len(lines), chosen, strings.Join(lines, "\n"))
			}
		}
	}
}

func TestTopKeys(t *testing.T) {
	var asked []string
	failing := false
	s := &topScreen{ask: func(_ context.Context, text string) (view.Summary, error) {
		asked = append(asked, text)
		if failing {
			return view.Summary{}, errors.New("the operator does not answer")
		}
		return topSummary(), nil
	}}
	s.refresh(t.Context())
	for _, key := range []string{"j", "\x1b[B", "\x1b[B", "\x1b[A", "/", "a", "q", "é", "\x7f", "\x1b[A", "\r"} {
		if s.press(t.Context(), key) {
			t.Fatalf("%q ends", key)
		}
	}
	if want := []string{"", "a", "aq", "aqé", "aq"}; !cmp.Equal(want, asked) || s.filter != "aq" || s.selected != 1 || s.typing {
		t.Errorf("asked for %q, the filter is %q, group %d is chosen", asked, s.filter, s.selected)
	}
	s.press(t.Context(), "\r")
	if !strings.Contains(s.detail, "KUBECONFIG") {
		t.Errorf("without a cluster: %q", s.detail)
	}
	s.press(t.Context(), "x")
	failing = true
	s.refresh(t.Context())
	lines := s.lines(topNow, 80, 24)
	if last := lines[len(lines)-1]; last != "! the operator does not answer" || len(s.sum.Groups) != 3 {
		t.Errorf("the last line is %q, with %d groups", last, len(s.sum.Groups))
	}
	if !s.press(t.Context(), "q") || !s.press(t.Context(), "\x03") {
		t.Error("q and Ctrl-C do not end it")
	}
}

// The object that is chosen is the one that is explained, and is on the screen.
func TestTopChoosesAnObject(t *testing.T) {
	s := &topScreen{flags: new(topFlags), ask: func(context.Context, string) (view.Summary, error) { return topSummary(), nil }}
	s.refresh(t.Context())
	for _, test := range []struct {
		key, want string
	}{
		{"\x1b[C", "[Database shop/odd]"}, {"j", "[Database shop/a], Database shop/b and 210 more"},
		{"\x1b[C", "1 before, [Database shop/b] and 210 more"}, {"l", "1 before, [Database shop/b]"}, {"h", "[Database shop/a]"},
		{"\x1b[B", "[Database shop/x]"}, {"l", "[Database shop/y]"}, {"k", "[Database shop/a]"},
	} {
		s.press(t.Context(), test.key)
		if lines := strings.Join(s.lines(topNow, 80, 24), "\n"); !strings.Contains(lines, test.want) || strings.Count(lines, "[") != 1 {
			t.Errorf("after %q, %q is not on the screen:\n%s", test.key, test.want, lines)
		}
	}
}

// The commands ask the operator for the summary of its page, and say what is wrong with the answer.
func TestTopAsksTheOperator(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	activity := view.NewActivity()
	page := view.New(view.Options{Name: "shop", Objects: noObjects{}, Activity: activity})
	server := httptest.NewServer(http.StripPrefix(strings.TrimSuffix(view.Path, "/"), page))
	defer server.Close()
	activity.Observe(t.Context(), journal.Entry{Time: time.Now(), Controller: "database", Object: journal.Object{Kind: "Database", Name: "a"}, Event: journal.Finished{Result: journal.ResultFailed}})

	without := httptest.NewServer(http.NotFoundHandler())
	defer without.Close()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"top", "--endpoint", server.URL}, 0, "controller database: 0 reconciles in the last minute, 1 in the last hour, 1 failed"},
		{[]string{"top", "--endpoint", server.URL, "-o", "json"}, 0, `"failed": 1`},
		{[]string{"explain", "--all", "--endpoint", server.URL}, 0, "\n"},
		{[]string{"top", "--endpoint", without.URL}, 1, "serves no page: it needs operator.WithPage"},
		{[]string{"top", "--endpoint", "none"}, 1, "finding a cluster"},
		{[]string{"top", "--interval", "1ms"}, 2, "a tenth of a second"},
		{[]string{"explain", "--all", "a", "b"}, 2, `unexpected argument "b": ctrlkit explain KIND/NAME`},
	} {
		var all strings.Builder
		cmd := New()
		cmd.SetArgs(test.args)
		cmd.SetOut(&all)
		used, err := cmd.ExecuteContextC(t.Context())
		report(&all, used, err)
		if code := exitCode(err); code != test.code || !strings.Contains(all.String(), test.want) {
			t.Errorf("%v: exit code %d, want %d and %q:\n%s", test.args, code, test.code, test.want, all.String())
		}
	}
}

// noObjects are the objects of a cluster without any.
type noObjects struct{ view.Objects }

func (noObjects) Kinds() []schema.GroupKind { return nil }
