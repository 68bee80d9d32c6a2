// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench compares ctrlkit with its alternatives. It is a module of its own so that these are
// not dependencies of the library.
//
//	make bench
//	go test -run TestRequestsTable -v ./requests
//
// Figures are ratios within one run, allocations, or counts of requests: machines differ.
package bench
