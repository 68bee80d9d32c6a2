// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package gobuild runs "go build" and says how far it is: a first build of what imports Kubernetes
// takes minutes, in which the go command prints nothing.
//
//	build := &gobuild.Build{Command: goCommand, Packages: []string{"./cmd/ctrlkit"}, Words: os.Stderr}
//	defer gobuild.Show(os.Stderr, gobuild.WhenSlow, "compiling ctrlkit", build.String)()
//	err := build.Run(ctx, "-o", "bin/ctrlkit")
//
// It imports the standard library alone, so that a program that shows how others are compiled is
// itself compiled first.
package gobuild
