// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package witness_test

const raceDetector = false
