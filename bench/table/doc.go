// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package table is the arithmetic of "make bench", and how its result is printed: samples by row,
// operator and round become medians with their spread, absolute and relative to one operator within
// the same round. It measures nothing.
package table
