// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"

	"github.com/ctrlkit/ctrlkit/step"
)

// watching returns a step of Projects that notes its calls as one:object, and declares a watch.
func watching(w *world, watch step.Watch) step.Step[*Project] {
	return step.Step[*Project]{
		Name: "watching", Watches: func() []step.Watch { return []step.Watch{watch} },
		Do: func(_ context.Context, req *step.Request[*Project]) error {
			w.call("one:" + req.Object.Name)
			return nil
		},
	}
}
