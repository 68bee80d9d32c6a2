// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"fmt"

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
