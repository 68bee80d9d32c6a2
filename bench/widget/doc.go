// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package widget is a kind of object with three children and something outside of the cluster, and two operators for it: one made of steps, and one as
// operators are usually written with controller-runtime. They do the same, so that their costs can be compared.
package widget
