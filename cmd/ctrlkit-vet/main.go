// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command ctrlkit-vet is a tool for go vet that reports actions that are never run and outcomes
// that are never returned:
//
//	go vet -vettool=$(which ctrlkit-vet) ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ctrlkit/ctrlkit/vet"
)

func main() { unitchecker.Main(vet.Discarded) }
