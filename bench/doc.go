// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench compares ctrlkit with its alternatives. It is a module of its own so that these are
// not dependencies of the library.
//
//	make bench
//	make benchmarks
//	go run ./measure -outside
//	go test -run TestRequestsTable -v ./requests
//
// The first measures operators on the real control plane: package operators has them, process runs
// them, command measure does the rounds, and table does the arithmetic. The second runs the
// benchmarks of Go. The third measures an operator of external resources. Figures are ratios within
// one run, allocations, or counts of requests: machines differ.
package bench
