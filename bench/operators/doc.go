// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package operators has operators that all keep the same: a Widget with a finalizer, a ConfigMap, a
// Secret and a headless Service, and a status with Ready and the observed generation. They differ
// in how they are written, and are what "make bench" compares. [All] lists them.
package operators
