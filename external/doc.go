// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package external reconciles objects that stand for a resource in a system outside the cluster: a
// stream, a bucket, a database. An operator connects, and observes, creates, updates and deletes
// one resource; everything else is done here:
//
//	type streams struct{ servers *external.Pool[*nats.Conn] }
//
//	type request = step.Request[*v1.Stream]
//
//	func (s streams) Connect(ctx context.Context, req *request) (external.Client[*v1.Stream], error)
//
//	stream := external.New("Stream", streams{servers}, external.Options[*v1.Stream]{
//		Identity: external.ByName(nameOf), // made of the UID by NameRules, or that of the spec
//	})
//	engine, err := step.New(options, stream)
//
// What decides how safe creation is, is by what the external system identifies resources: see
// [Identity]. The intent to create one is written to the object before it is created, in one patch
// with the finalizer. After a crash the resource is found again by its name, its token or its tag.
// Only where a system knows none of these, a person has to look, and the condition says for what.
//
// It is an implementation of package lifecycle, so that policies, claims and deletion are as
// described there.
package external
