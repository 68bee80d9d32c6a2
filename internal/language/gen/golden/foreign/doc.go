// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package foreign has managers for kinds of others, whose references have a namespace, a kind, a
// default, or may be empty. The actions report in the status which objects there are, so that the
// simulator sees an object that was missed.
//
//go:generate go run github.com/ctrlkit/ctrlkit/cmd/ctrlkit generate .
package foreign
