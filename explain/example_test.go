// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/explain"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// An operator without a metrics server serves the handler itself. Without a name, it lists the
// objects that something is known about.
func ExampleHandler() {
	ring := journal.NewRing(journal.RingOptions{})
	mux := http.NewServeMux()
	mux.Handle(explain.Path, explain.Handler(ring))

	// An engine with the ring as an observer does this.
	ctx := context.Background()
	database := journal.Object{Group: "example.com", Kind: "Database", Namespace: "shop", Name: "db"}
	run := journal.NewRun(ring, "1", "database", database)
	run.Note(ctx, journal.Started{})
	run.Note(ctx, journal.Finished{Result: journal.ResultDone})

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, explain.Path, nil))
	fmt.Print(answer.Body)
	// Output:
	// [{"group":"example.com","kind":"Database","namespace":"shop","name":"db"}]
}

// A ring that all engines of a manager share, served beside the metrics. Package observe does the
// same in one line.
func ExampleServe() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	ring := journal.NewRing(journal.RingOptions{})
	if err := explain.Serve(mgr, ring); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	engine, err := step.New(step.Options[*corev1.Secret]{
		Name: "secret", Client: mgr.GetClient(), Observers: []journal.Observer{ring},
	}, step.Func("Check", func(context.Context, *step.Request[*corev1.Secret]) (ctrl.Result, error) {
		return ctrl.Result{}, nil
	}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_ = engine // goes into a controller
}
