// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package gen writes the Go of a checked package of documents.
//
//	files, err := gen.Generate(pkg)
//
// Each document that declares managers becomes one file. What the files contain is laid out in manager.go.tmpl, which reads like
// the code that it makes; the rest of the package prepares the words for it: names that clash with nothing (names.go),
// imports (imports.go), the Go of values (value.go), and what a state selects and how it is read (state.go).
//
// The package does no I/O, and the same model always gives the same bytes.
package gen
