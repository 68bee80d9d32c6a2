// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command soak runs the operators of the examples in a real control plane, kills them with SIGKILL
// at random times while schedules come due and objects are edited, then stops killing and editing,
// and checks the objects in the API server.
//
//	make soak                                                       # all examples, about an hour
//	go run ./examples/internal/soak -example 03_rwexternal -objects 20 -chaos 2m -quiet 2m
//	go run ./examples/internal/soak -example 05_user -replicas 2 -actions stop=10
//
// It observes the operators from outside: it builds their programs as a user does, runs them with
// the permissions of their roles, and reads the objects in the API server, and what is outside of
// it. A model, computed from the seed alone, says how these should be. With two replicas, the
// leader is stopped and resumed beside its successor. See docs/run.md.
package main
