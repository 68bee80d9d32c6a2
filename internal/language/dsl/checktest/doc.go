// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package checktest is for tests of the front end and of the generator. It has the Go module that
// the language's example belongs to, and a loader of packages that needs no go command.
package checktest
