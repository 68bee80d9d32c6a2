// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command ctrlkit-vet is a tool for go vet with the analyzers of package vet:
//
//	go vet -vettool=$(which ctrlkit-vet) ./...
//	go vet -vettool=$(which ctrlkit-vet) -unwatched -shared ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ctrlkit/ctrlkit/vet"
)

func main() { unitchecker.Main(vet.Analyzers()...) }
