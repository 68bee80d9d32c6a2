// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package diag holds the diagnostics of the language: what is wrong where, under a stable code, with a hint.
//
// Every stage of the front end returns a [List] beside its result and prints nothing itself:
//
//	list := diag.List{{
//		Code:    diag.UnknownState,
//		Start:   file.Position(word.Start),
//		End:     file.Position(word.End),
//		Message: `unknown state "job" in action Sync`,
//		Hint:    `did you mean "jobs"?`,
//	}}
//	list.Sort()
//	diag.Printer{Sources: sources}.Print(os.Stdout, list)
//
// The table of codes with their explanations and smallest examples is in this package too ([Codes]): the manual, the
// tests and `ctrlkit check --explain` read the same one.
package diag
