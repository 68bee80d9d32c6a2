// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package lsp is the language server of the language, which `ctrlkit lsp` runs for an editor:
//
//	err := lsp.Serve(ctx, os.Stdin, os.Stdout, lsp.Options{Loader: check.GoLoader{}, Draw: draw})
//
// It stands on the front end: a text is parsed once after each change, and the checker, the
// formatter and all answers work on that tree. Mistakes of form are found as one types.
// Those that need Go packages are found when the packages are loaded, which happens beside the
// answers, once for each package and module, and again after a Go file has changed.
//
// The protocol is the Language Server Protocol 3.17 (https://microsoft.github.io/language-server-protocol).
// github.com/sourcegraph/jsonrpc2 carries it: it is maintained (v0.2.3 of September 2026), and the
// part of it that is used here imports only the standard library. The libraries with all types of
// the protocol are not: go.lsp.dev/protocol had its last version in March 2022 and brings zap and a
// JSON package of its own, github.com/tliron/glsp in March 2024 and brings websockets and loggers.
// The few types that a server of this size needs are in protocol.go.
//
// Only package command imports this package, so that operators do not have it in their programs.
package lsp
