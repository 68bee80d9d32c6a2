// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package diag has the diagnostics of the language. A diagnostic is a mistake at a place, with a
// stable code and a hint.
//
// Every stage of the front end returns a [List] in addition to its result, and prints nothing:
//
//	start, end := file.Position(word)
//	list := diag.List{{
//		Code:    diag.UnknownState,
//		Start:   start,
//		End:     end,
//		Message: `unknown state "job" in action Sync`,
//		Hint:    `did you mean "jobs"?`,
//	}}
//	list.Sort()
//	diag.Printer{Sources: sources}.Print(os.Stdout, list)
//
// [Codes] is the table of the codes, with their explanations and smallest examples. The manual, the
// tests and `ctrlkit check --explain` all use it.
package diag
