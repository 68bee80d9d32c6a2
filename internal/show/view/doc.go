// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package view serves a live page about an operator: its kinds and controllers, its objects grouped
// by what is in their way, one object with what can be done, and reconciles on an axis of time.
//
// Every address is a whole page that is rendered by the server and works without scripts. With them,
// a stream of server-sent events replaces the parts of it that have changed. What an object, an error
// or a name says is text in it, and values of objects are not in it.
//
// Without a viewer, a [Server] counts reconciles and keeps nothing about objects.
package view
