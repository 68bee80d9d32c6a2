// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sony/gobreaker/v2"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
)

var (
	answerOf = regexp.MustCompile("^(no answer|[0-9]{3}|`[A-Z][A-Za-z]+`)$")
	markOf   = regexp.MustCompile("^the error, marked `Class([A-Za-z]+)`$")
)

// Each row of the table of answers in docs/external.md is what happens.
func TestAnswers(t *testing.T) {
	guide, err := os.ReadFile("../docs/external.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "\n| your system answers |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")[2:]
	if len(rows) < 8 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		tried := 0
		for _, answer := range strings.Split(cells[0], ", ") {
			if !answerOf.MatchString(answer) {
				continue
			}
			tried++
			synctest.Test(t, func(t *testing.T) {
				if diff := cmp.Diff(cells[2:], happens(t, returned(t, answer, cells[1]))); diff != "" {
					t.Errorf("%s, %s (-documented +happens):\n%s", answer, cells[1], diff)
				}
			})
		}
		if tried == 0 {
			t.Errorf("no answer in the row %s", row)
		}
	}
}

// returned is what a client returns of an answer, in the words of the table.
func returned(t *testing.T, answer, client string) error {
	t.Helper()
	err := errors.New("rpc error: code = " + strings.Trim(answer, "`") + " desc = no")
	if status, notHTTP := strconv.Atoi(answer); notHTTP == nil {
		err = fmt.Errorf("GET /silos/a: %d %s", status, http.StatusText(status))
	}
	if answer == "no answer" {
		err = errors.New("dial tcp 10.0.0.1:443: connect: connection refused")
	}
	switch mark := markOf.FindStringSubmatch(client); {
	case client == "the error":
		return err
	case client == "`Absent`, and no error":
		return nil
	case client == "`external.Refused` of the error":
		return Refused(err)
	case mark != nil:
		return failure.Mark(err, failure.WithClass(map[string]failure.Class{
			"Forbidden": failure.ClassForbidden, "Invalid": failure.ClassInvalid, "NotFound": failure.ClassNotFound,
			"Conflict": failure.ClassConflict, "Terminal": failure.ClassTerminal,
		}[mark[1]]))
	}
	t.Fatalf("what is %q?", client)
	return nil
}

// happens is what follows from an answer: the class, the severity, when it is tried again, and
// whether it counts.
func happens(t *testing.T, answer error) []string {
	t.Helper()
	n, c := 0, newCalls(Calls[configMap]{Failures: 1})
	err := c.do(t.Context(), in("a"), "observe", answers(&n, answer))
	_, _, b := c.of(in("a"))
	counted := map[bool]string{true: "yes", false: "no"}[b.State() == gobreaker.StateOpen]
	if err == nil {
		return []string{"none", "none", "when it is polled", counted}
	}
	found := failure.Classify(err)
	if len(ctrlkit.Waits(err)) > 0 {
		_, slower := throttled(answer)
		return []string{map[bool]string{true: "`Throttled`"}[slower], "info", "at its turn", counted}
	}
	severity := strings.ToLower(found.Severity.String())
	if found.Silent(1) {
		severity = "none at first"
	}
	again := fmt.Sprintf("after %s, up to %s", spaced(found.Backoff.Initial), spaced(found.Backoff.Max))
	return []string{"`" + string(found.Class) + "`", severity, again, counted}
}

// spaced is a duration as documents write it.
func spaced(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprint(int(d.Hours()), " h")
	case d >= time.Minute:
		return fmt.Sprint(int(d.Minutes()), " min")
	case d >= time.Second:
		return fmt.Sprint(int(d.Seconds()), " s")
	}
	return fmt.Sprint(d.Milliseconds(), " ms")
}
