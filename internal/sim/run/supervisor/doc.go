// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs a program that ends when the process that has started it ends, and lets it
// reach nothing but its cluster. It imports no package of Kubernetes, so that it starts at once.
package supervisor
