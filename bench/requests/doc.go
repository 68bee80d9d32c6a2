// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package requests counts the requests of operators. It is a proxy between the operator and the API
// server, so that it can measure any operator, in any language.
//
//	go test -run TestRequestsTable -v ./requests
//
// The test prints a table of requests, by phase of an object's life, against the real API server.
package requests
