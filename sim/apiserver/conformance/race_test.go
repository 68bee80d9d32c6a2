// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && race

package conformance

const raceDetector = true
