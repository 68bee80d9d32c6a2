// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An operator without a metrics server serves the handler itself. Without a name, it lists the
// objects that something is known about.
func ExampleHandler() {
	ring := journal.NewRing(journal.RingOptions{})
	mux := http.NewServeMux()
	mux.Handle(explanation.Path, explanation.Handler(ring))

	// An engine with the ring as an observer does this.
	ctx := context.Background()
	database := journal.Object{Group: "example.com", Kind: "Database", Namespace: "shop", Name: "db"}
	run := journal.NewRun(ring, "1", "database", database)
	run.Note(ctx, journal.Started{})
	run.Note(ctx, journal.Finished{Result: journal.ResultDone})

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, explanation.Path, nil))
	fmt.Print(answer.Body)
	// Output:
	// [{"group":"example.com","kind":"Database","namespace":"shop","name":"db"}]
}
