// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package widget has the kind that all measured operators keep, with three children.
package widget
