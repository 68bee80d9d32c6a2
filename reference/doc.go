// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package reference lets objects refer to others, by name or by labels: a reference is awaited, and
// what it refers to stays as long as it is used. One value is given to the engines of both kinds:
//
//	var streamOf = reference.New(reference.Options[*v1.Consumer, *v1.Stream]{
//		Name:   "stream",
//		Target: func(obj *v1.Consumer) reference.Target { return reference.Target{Name: obj.Spec.Stream} },
//	})
//
//	stream := external.New("Stream", streams{}, options) // the one that is referred to
//	engine, err := step.New(options, stream, reference.Protect(streamOf))
//
//	consumer := external.New("Consumer", consumers{}, external.Options[*v1.Consumer]{
//		References: []reference.Of[*v1.Consumer]{streamOf},
//	})
//
// A reference is in use from the moment when it is recorded in an annotation of the object, before
// anything is made for that. An object that still waits uses nothing, so that it blocks nothing.
//
// Package external does all of this. A step of one's own calls Await in its Claim and Confirm
// before it makes something; for an object that it only observes, it calls Resolve, Request.Save and Hold.
package reference
