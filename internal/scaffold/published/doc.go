// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package published makes a directory that the go command takes for a module proxy, with this
// checkout as a released version of ctrlkit. Its test scaffolds an operator from there, as users do
// after a release: without a checkout, and without a replace line.
package published
