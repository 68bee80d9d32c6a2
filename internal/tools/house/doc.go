// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package house has the tests of the repository as a whole: its layers, sizes, words, public API and
// documentation.
package house
