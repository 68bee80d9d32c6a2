// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package defined has a manager that is generated for kinds without Go types: what the document
// knows of them is in traffic.yaml. The actions are those of an operator, which the simulator runs.
//
//go:generate go run github.com/ctrlkit/ctrlkit/cmd/ctrlkit generate .
package defined
