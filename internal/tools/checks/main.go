// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command checks is the tool for go vet with which make vet checks this repository: the analyzers of
// go vet and those of internal/vet, in one pass over the code.
package main

import (
	"slices"

	suite "golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ctrlkit/ctrlkit/internal/vet"
)

func main() { unitchecker.Main(slices.Concat(suite.Suite, vet.Analyzers())...) }
