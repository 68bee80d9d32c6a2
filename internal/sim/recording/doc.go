// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording has the file that "ctrlkit record" writes: what an operator sees of a cluster,
// for a bug report and for a test that replays it. Its values of Secrets are stand-ins.
package recording
