// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench compares ctrlkit with what one would use instead. It is a module of its own so that what is compared with is no
// dependency of the library.
//
//	make bench
//	go test -run TestRequestsTable -v ./requests
//
// Figures are ratios within one run, allocations, or counts of requests: machines differ.
package bench
