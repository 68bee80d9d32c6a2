// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package reference_test

const raceDetector = true
