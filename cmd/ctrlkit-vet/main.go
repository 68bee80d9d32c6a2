// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command ctrlkit-vet is a tool for go vet that finds mistakes in operators that the compiler lets
// pass: kinds that are read and never watched, outcomes that are thrown away, clients and clocks that
// bypass those of the request. docs/check.md explains each analyzer.
//
//	go vet -vettool=$(which ctrlkit-vet) ./...
//	go vet -vettool=$(which ctrlkit-vet) -unwatched -shared ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ctrlkit/ctrlkit/internal/vet"
)

func main() { unitchecker.Main(vet.Analyzers()...) }
