// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command soak runs the operators of the examples against a real control plane, kills them with
// SIGKILL at random times while schedules come due and objects are edited, then leaves them alone,
// and checks that the world is as it should be.
//
//	make soak                                                       # all examples, about an hour
//	go run ./examples/internal/soak -example 03_rwexternal -objects 20 -chaos 2m -calm 2m
//
// It looks at the operators from outside: it builds their programs as a user would, gives them the
// rights of their roles, and reads what the API server has. A model, computed from the seed alone,
// says what that should be. See docs/soak.md.
package main
