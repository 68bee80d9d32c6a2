// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package apply_test

const raceDetector = false
