// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package process runs operators as processes of their own, so that each has its own CPU time and
// its own heap.
//
// An operator is a program that reads its settings with [ParseFlags] and calls [Serve] when its caches are
// filled. The program that measures starts it with [Start], and asks it for [Stats]. Both speak
// over standard input and output, one line of JSON for each answer. An operator whose standard
// input ends, because the program that measures has ended, ends too.
//
// A program that is built without this package, with other versions of its libraries, does the
// same: it accepts the flags of [Settings], of which it uses -kubeconfig, -namespace and -workers
// at least, and -system and -poll if its Widgets stand for external resources of package outside,
// with a Secret of the name of each, and prints a line
// with [Stats] in JSON when its caches are filled. From then on, it answers each line that it
// reads, "stats" or "heap" (after a garbage collection) first of all, with another one. Durations
// are in nanoseconds. It makes Widgets ready as package operators does.
package process
