// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/ctrlkit/ctrlkit/vet"
)

func TestDiscarded(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), vet.Discarded, "seed")
	analysistest.Run(t, analysistest.TestData(), vet.Discarded, "clean")
}
