// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/failure"
)

var errQuota = errors.New("quota of 3 buckets is used up")

// The table classifies what it recognizes. A mark overrules it.
func ExampleClassify() {
	buckets := schema.GroupResource{Group: "example.com", Resource: "buckets"}
	for _, err := range []error{
		apierrors.NewConflict(buckets, "photos", errors.New("it was changed")),
		fmt.Errorf("creating bucket: %w", context.DeadlineExceeded),
		failure.Mark(errQuota, failure.WithClass(failure.ClassTerminal), failure.WithReason("QuotaExceeded"), failure.WithRemedy("delete a bucket, or ask for more")),
	} {
		v := failure.Classify(err)
		fmt.Printf("%s: %s, silent at first: %t, again after %v to %v\n", v.Reason, v.Severity, v.Silent(1), v.Backoff.Initial, v.Backoff.Max)
	}
	// Output:
	// Conflict: info, silent at first: true, again after 20ms to 30s
	// TemporaryError: warning, silent at first: false, again after 100ms to 5m0s
	// QuotaExceeded: error, silent at first: false, again after 1m0s to 1h0m0s
}
