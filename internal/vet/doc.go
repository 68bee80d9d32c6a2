// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package vet finds mistakes in operators that the compiler lets pass: kinds that are read and never
// watched, outcomes that are thrown away, clients and clocks that bypass those of the request,
// changes of objects that belong to the cache, conditions that are not declared, and contexts that
// are not passed on. docs/check.md explains each analyzer.
//
//	defer mgr.UpdateCronJobStatus() // makes an action when the function ends, and never runs it
//
// The analyzers look at one package at a time and accuse only where that package shows the mistake:
// what they can't see is right. They work with everything that drives analyzers of
// golang.org/x/tools/go/analysis. The command `ctrlkit vet` runs them by itself, and ctrlkit-vet is
// a tool for `go vet`:
//
//	go install github.com/ctrlkit/ctrlkit/cmd/ctrlkit-vet@latest
//	go vet -vettool=$(which ctrlkit-vet) ./...
package vet
