// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A ring keeps what has happened to an object.
func ExampleRing() {
	ring := journal.NewRing(journal.RingOptions{Entries: 100})
	database := journal.Object{Group: "example.com", Kind: "Database", Namespace: "default", Name: "db"}

	// An engine makes the run, and steps find it in their context.
	run := journal.NewRun(ring, "1", "databases", database)
	ctx := journal.ContextWithRun(context.Background(), run)
	run.Note(ctx, journal.Started{Causes: []journal.Cause{
		{Kind: journal.CauseChildChange, Verb: "updated", Object: journal.Object{Kind: "Secret", Namespace: "default", Name: "db"}, Times: 2},
	}})
	if run := journal.RunFromContext(ctx); run != nil {
		run.Note(ctx, journal.Called{What: "POST /buckets"})
	}
	run.Note(ctx, journal.Finished{Result: journal.ResultDone})

	for _, entry := range ring.Entries(database) {
		fmt.Println(entry)
	}
	// Output:
	// Database default/db: started, because of Secret default/db updated 2 times
	// Database default/db: called POST /buckets
	// Database default/db: finished: done
}

// A writeCounter counts the writes of each controller that have changed something.
type writeCounter map[string]int

func (c writeCounter) Observe(_ context.Context, entry journal.Entry) {
	if wrote, ok := entry.Event.(journal.Wrote); ok && wrote.Err == nil && !wrote.NoOp {
		c[entry.Controller]++ // an engine with several workers needs a lock
	}
}

func ExampleObserver() {
	counter := make(writeCounter)
	database := journal.Object{Group: "example.com", Kind: "Database", Namespace: "default", Name: "db"}
	secret := journal.Object{Kind: "Secret", Namespace: "default", Name: "db"}

	// An engine with the counter as an observer does this.
	ctx := context.Background()
	run := journal.NewRun(counter, "1", "databases", database)
	run.Note(ctx, journal.Wrote{Verb: "create", Object: secret})
	run.Note(ctx, journal.Wrote{Verb: "patch", Object: database, Subresource: "status", NoOp: true})
	run.Note(ctx, journal.Wrote{Verb: "patch", Object: database, Fields: []string{".metadata.finalizers"}})

	fmt.Println(counter["databases"], "writes")
	// Output: 2 writes
}

// The log of a reconcile at verbosity 1. Reads, which are logged at verbosity 2, are missing.
func ExampleLogger() {
	logger := funcr.New(func(_, line string) {
		fmt.Println(strings.NewReplacer(` "controller"`, "\n\"controller\"", ` "run"`, "\n\"run\"").Replace(line))
	}, funcr.Options{Verbosity: 1})
	zone := journal.Object{Kind: "Zone", Name: "eu"}

	// An engine with the logger as an observer does this.
	ctx := context.Background()
	run := journal.NewRun(journal.Logger(logger), "1", "zones", zone)
	run.Note(ctx, journal.Read{Object: zone})
	run.Note(ctx, journal.StepSkipped{Step: "Peer", After: "Network"})
	// Output:
	// "level"=1 "msg"="Step skipped"
	// "controller"="zones" "kind"="Zone" "namespace"="" "name"="eu"
	// "run"="1" "step"="Peer" "after"="Network"
}

// A log of what is changed outside the cluster, in a file.
func ExampleChangeLog() {
	_ = func(file *os.File, logger logr.Logger) journal.Observer {
		changes := journal.ChangeLog(file, func(err error) { logger.Error(err, "The change log was not written") })
		return changes
	}
}
