// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
)

// changing returns a Do that changes the object.
func changing(change func(obj *Thing)) doFunc {
	return does(func(_ context.Context, req *request) { change(req.Object) })
}
