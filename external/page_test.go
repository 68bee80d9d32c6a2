// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
)

// The page of an operator reads the annotations that this package writes.
func TestThePageReadsTheAnnotations(t *testing.T) {
	for written, read := range map[string]string{
		external.IDAnnotation: view.IDAnnotation, external.IntentAnnotation: view.IntentAnnotation, operatorAnnotation: view.OperatorAnnotation,
	} {
		if written != read {
			t.Errorf("the page reads %s, written is %s", read, written)
		}
	}
}
