// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package vet finds mistakes in the use of this module that the compiler lets pass.
//
// An action does nothing until it is run, and an outcome does nothing until it is returned.
// [Discarded] reports where one was made and thrown away:
//
//	defer mgr.UpdateCronJobStatus() // makes an action when the function ends, and never runs it
//
// The analyzer works with everything that drives analyzers of golang.org/x/tools/go/analysis. The
// command `ctrlkit vet` runs it by itself, and ctrlkit-vet is a tool for `go vet`:
//
//	go install github.com/ctrlkit/ctrlkit/cmd/ctrlkit-vet@latest
//	go vet -vettool=$(which ctrlkit-vet) ./...
package vet
