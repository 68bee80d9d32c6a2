// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/journal"
)

func TestLogger(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
	object := journal.Object{Kind: "Database", Namespace: "shop", Name: "db"}
	for _, event := range []journal.Event{
		journal.Triggered{}, // too much for verbosity 1
		journal.Read{},
		journal.StepEnded{Step: "Connect", Phase: journal.PhaseDo, Outcome: journal.Outcome{Waits: []journal.Wait{{For: "Secret shop/db"}}}},
		journal.Finished{Result: journal.ResultFailed, Outcome: journal.Outcome{Err: errors.New("connection refused"), Class: "TemporaryError"}},
	} {
		journal.Logger(logger).Observe(t.Context(), journal.Entry{Controller: "database", Object: object, Event: event})
	}
	const head = `"level"=1 "msg"=`
	want := []string{
		head + `"Step ended" "controller"="database" "kind"="Database" "namespace"="shop" "name"="db" "step"="Connect" "phase"="Do" "took"="0s" "waitsFor"="Secret shop/db"`,
		head + `"Reconcile ended" "controller"="database" "kind"="Database" "namespace"="shop" "name"="db" "result"="failed" "took"="0s" "class"="TemporaryError" "failure"="connection refused"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if strings.Contains(strings.Join(lines, ""), "error=") {
		t.Error("a wait, or a failure that controller-runtime logs, is logged as an error")
	}
}
