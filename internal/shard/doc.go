// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharding lets the replicas of an operator share the work: each reconciles, and caches, a
// part of the objects. It is the shard's side of the protocol of [kubernetes-controller-sharding],
// whose sharder assigns objects to shards and moves them when a replica comes or goes:
//
//	mgr, shard, err := sharding.NewManager(config, ctrl.Options{...}, sharding.Options{Ring: "databases"})
//	...
//	engine, err := step.New(step.Options[*v1.Database]{..., Shard: shard}, ...)
//
// The ring is a ControllerRing of that project. Without a name of one the manager is that of package
// leader, with leader election if its options say so, and the shard is nil, which everything takes.
//
// What a shard keeps:
//
//   - It holds a Lease of its own instead of that of a leader, and reconciles only while it does. When
//     it ends, it gives the Lease back after its last reconcile.
//   - Its caches have the objects that are assigned to it, and no others.
//   - Before an object moves, the sharder asks for it with a label. The shard removes the labels when
//     no reconcile of the object runs, in one write, and forgets what it knew of the object.
//   - After its Lease has expired it begins nothing and writes nothing, whatever still runs, as package
//     leader says of leaders: the error is leader.ErrExpired.
//
// The package assigns nothing: without the sharder, new objects belong to no shard.
//
// [kubernetes-controller-sharding]: https://github.com/timebertt/kubernetes-controller-sharding
package shard
