// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// An error in a bubble does not wait for the time of an error outside.
func TestErrorsOfOtherTimes(t *testing.T) {
	err := errors.New("the watch has ended")
	utilruntime.HandleErrorWithContext(context.Background(), err, "outside")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		utilruntime.HandleErrorWithContext(t.Context(), err, "in a bubble")
		if slept := time.Since(began); slept != 0 {
			t.Errorf("it slept for %s", slept)
		}
	})
}
