// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package gen writes the Go of a checked package of documents.
//
//	files, err := gen.Generate(pkg)
//
// Each document that declares managers becomes one file. The template manager.go.tmpl reads like
// the code that it makes. The rest of the package prepares its words: the view (view.go), names
// that do not collide (names.go), imports (imports.go), the Go of values (value.go), and what a
// state selects and how it is read (state.go).
//
// The package does no I/O, and the same model always gives the same bytes.
package gen
