// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package widget has a kind with three children and an external resource, and operators for it: one
// made of steps, and two written by hand with controller-runtime. They do the same, so that their
// costs can be compared.
package widget
