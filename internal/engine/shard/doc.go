// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package shard is the shard's side of the protocol of [kubernetes-controller-sharding]: the Lease
// and the caches of a shard, and what an engine asks before it reconciles an object. Package
// operator makes shards, and says what they keep; packages step and handlers ask them.
//
// [kubernetes-controller-sharding]: https://github.com/timebertt/kubernetes-controller-sharding
package shard
