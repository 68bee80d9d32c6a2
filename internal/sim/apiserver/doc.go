// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a Kubernetes API server in memory, for tests. It gives the same answers,
// watch events and garbage collection as the real one, in microseconds, without a process, a port
// or a download.
//
//	server := apiserver.New(apiserver.Options{})
//	if err := server.Install(crds...); err != nil { ... }
//	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{})
//
// [Server.Handler] serves it over HTTP, for other processes and for kubectl; package memory makes a
// cluster of it.
//
// Where the real server's libraries can be used, they are: for server-side apply, patches, the
// schemas and CEL rules of CustomResourceDefinitions, and the validation of metadata. The rest
// imitates upstream; package conformance sends the same random requests to both servers and
// compares the answers.
//
// The server starts no goroutines and reads no clock but [Options].Now, so that it can run in a
// testing/synctest bubble. Equal requests in equal order give equal answers.
//
// Its limits:
//
//   - It speaks JSON, YAML and protobuf, but not CBOR. Tables have the columns of a real server for
//     custom resources and the usual built-in kinds; others have a name and an age.
//   - Its OpenAPI documents are of version 3, with the schemas of all kinds, but without the limits
//     of values that Kubernetes notes in comments only.
//   - It calls no webhooks; [Options].Admission can.
//   - It authenticates no request, though it issues and reviews tokens of ServiceAccounts. It
//     authorizes requests if there is an [Options].Authorizer and the request has a user.
//   - It runs no controllers but the garbage collector, those of Namespaces and
//     CustomResourceDefinitions, and the protection of claims and volumes in use, and these only
//     when [Server.Work] is called or a request comes through [Server.Config].
//   - It refuses what it does not simulate with status 501 and a message that says what is missing.
package apiserver
