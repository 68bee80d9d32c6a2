// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/gobuild"
)

func TestScreenDrawsOverTheLastPicture(t *testing.T) {
	width := 10
	var out bytes.Buffer
	s := &screen{out: &out, size: func() (int, int) { return width, 24 }}
	steps := []struct {
		name, above string
		lines       []string
		width       int
		want        string
	}{
		{"first", "", []string{"one", ""}, 10, "\x1b[?25lone\x1b[K\r\n\x1b[K\r\n\x1b[J"},
		{"second", "", []string{"two"}, 10, "\r\x1b[2Atwo\x1b[K\r\n\x1b[J"},
		{"below a log line", "log\r\n", []string{"\x1b[31m12345678\x1b[0m"}, 10, "\r\x1b[1A\x1b[Jlog\r\n\x1b[31m12345678\x1b[0m\x1b[K\r\n\x1b[J"},
		{"in a window that became narrower", "", []string{"数据库"}, 3, "\r\x1b[3A数据库\x1b[K\r\n\x1b[J"},
		{"with wide letters before", "", nil, 3, "\r\x1b[2A\x1b[J"},
	}
	for _, step := range steps {
		out.Reset()
		width = step.width
		must(t, s.draw(step.above, step.lines))
		if got := out.String(); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
	out.Reset()
	s.leave()
	s.leave()
	if got := out.String(); got != "\x1b[?25h" {
		t.Errorf("leaving writes %q, want the cursor once", got)
	}
}

func TestLineIsCutToItsWidth(t *testing.T) {
	tests := []struct {
		width int
		want  string
	}{
		{20, "abc数据 def"}, {11, "abc数据 def"}, {10, "abc数据 d…"}, {8, "abc数据…"}, {7, "abc数…"}, {6, "abc数…"}, {5, "abc…"}, {3, "ab…"}, {1, "…"},
	}
	for _, test := range tests {
		if got := line(false, test.width, span{"abc", red}, span{"数据", dim}, span{" def", ""}); got != test.want {
			t.Errorf("width %d: got %q, want %q", test.width, got, test.want)
		}
	}
	if got, want := line(true, 4, span{"abc", red}, span{"def", bold}), "\x1b[31mabc\x1b[0m\x1b[1m…\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShortenKeepsBothEnds(t *testing.T) {
	for text, want := range map[string]string{"hello": "hello", "hello-world-28374-x8k2j": "hello…8k2j", "数据库数据库": "数据…据库", "0123456789": "0123456789"} {
		if got := shorten(text, 10); got != want {
			t.Errorf("shorten(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 99*time.Second + 900*time.Millisecond: "99s", 100 * time.Second: "1m",
		99 * time.Minute: "99m", 100 * time.Minute: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 9999 * 24 * time.Hour: "9999d",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestStepsInAPipeAreLines(t *testing.T) {
	var out bytes.Buffer
	s := &steps{out: &out}
	st := s.begin("samples", "applying")
	st.say("still applying")
	st.skip("none")
	s.begin("cluster", "connecting").quit()
	s.remark("kubectl", "export X=y")
	if got, want := out.String(), "- samples        none\n→ kubectl        export X=y\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What takes long says so now and then, so that a log does not look like a hang.
func TestLongStepsInAPipeTellWhatTheyDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		st := (&steps{out: &out}).begin("operator", "building .")
		st.say("compiling a")
		time.Sleep(tellInterval + time.Second)
		synctest.Wait()
		st.say("compiling b")
		time.Sleep(tellInterval)
		st.done("built .")
		want := "… operator       compiling a (10s)\n… operator       compiling b (20s)\n✓ operator       built . (21.0s)\n"
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestRemarksBreakBetweenWords(t *testing.T) {
	var out bytes.Buffer
	s := &steps{out: &out, terminal: true, width: func() int { return 34 }}
	s.remark("limits", "no container runs, no webhook is called")
	s.remark("kubectl", "export KUBECONFIG=/tmp/a-long-name")
	want := "→ limits         no container\n                 runs, no webhook\n                 is called\n→ kubectl        export KUBECONFIG=/tmp/a-long-name\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStepsOnATerminalAreErasedBeforeTheirResult(t *testing.T) {
	var out bytes.Buffer
	s := &steps{out: &out, terminal: true, width: func() int { return 30 }}
	s.begin("cluster", "connecting").skip("a text that is longer than the terminal is wide")
	got := out.String()
	if !strings.Contains(got, "connecting") || !strings.HasSuffix(got, "\r\x1b[K- cluster        a text that…\n") {
		t.Errorf("got %q", got)
	}
}

func TestStepsAtTheSameTimeHaveALineEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &steps{out: &out, terminal: true, width: func() int { return 40 }}
		drawn := func(do func()) string {
			t.Helper()
			out.Reset()
			do()
			return strings.ReplaceAll(out.String(), spinner[0], "*")
		}
		var plane, operator *step
		for _, tt := range []struct {
			do   func()
			want string
		}{
			{func() { plane = s.begin("control plane", "a") }, "\r* control plane  a\x1b[K"},
			{func() { operator = s.begin("operator", "b") }, "\r* control plane  a\x1b[K\n\r* operator       b\x1b[K"},
			{func() { fmt.Fprintln(plane, "a line that stays") },
				"\r\x1b[K\x1b[A\x1b[Ka line that stays\n\r* control plane  a\x1b[K\n\r* operator       b\x1b[K"},
			{func() { s.mu.Lock(); s.draw(); s.mu.Unlock() }, "\x1b[1A\r* control plane  a\x1b[K\n\r* operator       b\x1b[K"},
			{func() { plane.quit() }, "\r\x1b[K\x1b[A\x1b[K\r* operator       b\x1b[K"},
			{func() { operator.skip("none") }, "\r\x1b[K- operator       none\n"},
		} {
			if got := drawn(tt.do); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		}
	})
}

// A picture has the lines of the steps that run, and takes the lines that stay.
func TestAPictureCoversTheSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, picture bytes.Buffer
		s := &steps{out: &out, terminal: true, width: func() int { return 60 }}
		st := s.begin("control plane", "a")
		uncover := s.cover(&picture)
		out.Reset()
		st.say("b")
		time.Sleep(time.Second)
		d := &liveDisplay{screen: &screen{out: io.Discard, size: func() (int, int) { return 60, 10 }}, title: "operator", steps: s}
		must(t, d.refresh(NewWorld(), time.Now()))
		if got := d.screen.drawn[0]; !strings.HasSuffix(got, "control plane  b (1s)") {
			t.Errorf("the picture begins with %q", got)
		}
		st.done("built")
		must(t, d.refresh(NewWorld(), time.Now()))
		if got, want := picture.String(), "✓ control plane  built (1.0s)\n"; got != want || d.screen.drawn[0] != "" || out.Len() > 0 {
			t.Errorf("the picture got %q, want %q; it begins with %q; the terminal got %q", got, want, d.screen.drawn[0], &out)
		}
		uncover()
		s.begin("stopping", "c").quit()
		if got := out.String(); !strings.Contains(got, "stopping       c") {
			t.Errorf("uncovered, the terminal got %q", got)
		}
	})
}

// A build says in its step how far it is, as soon as it knows.
func TestStepsShowTheProgressOfABuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		st := (&steps{out: &out}).begin("operator", "building .")
		begun := time.Now()
		stop := gobuild.Show(st, gobuild.WhenSlow, "building the program", func() string {
			if time.Since(begun) <= tellInterval {
				return ""
			}
			return "2 of 3 packages"
		})
		time.Sleep(2*tellInterval + time.Second)
		stop()
		st.done("built .")
		want := "… operator       building the program (10s)\n… operator       2 of 3 packages (20s)\n✓ operator       built . (21.0s)\n"
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestPlainPassesOnThatItCannotWrite(t *testing.T) {
	broken := errors.New("broken pipe")
	notice := Notice{Verb: "created", Object: &Object{Name: "x"}}
	if err := (Plain{Writer: failing{broken}}).Print(notice, time.Now()); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
