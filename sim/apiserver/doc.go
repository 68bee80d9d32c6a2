// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a Kubernetes API server in memory, for tests: the same answers, the same watch events and the same garbage collection
// as the real one, in microseconds, without a process, a port or a download.
//
//	server := apiserver.New(apiserver.Options{})
//	if err := server.Install(crds...); err != nil { ... }
//	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{})
//
// It stands on the libraries of the real server for everything that these do: server-side apply, patches, schemas and CEL rules of
// definitions, validation of metadata. That the rest does the same is shown by a test that sends both the same random requests.
//
// It has no goroutines and reads no clock but the one that it is given: it can run in a testing/synctest bubble, and equal requests in equal
// order make equal answers. It speaks JSON only, calls no webhooks, and runs no controllers besides the garbage collector and those of
// namespaces and definitions. What it does not do it refuses with status 501 and a message that says what is missing.
package apiserver
