// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package requests counts what operators ask of an API server. It stands between the two as a proxy, so that any operator can be measured, whatever
// it is written in and with.
//
//	go test -run TestRequestsTable -v ./requests
//
// The test prints a table of requests, by phase of an object's life, against the real API server.
package requests
