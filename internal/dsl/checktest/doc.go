// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package checktest gives tests of the front end and of the generator something to check documents against: a Go module
// with the API that the example of the language is about, and a loader that needs no go command.
package checktest
