// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package command implements the command line of ctrlkit, one file per subcommand. New returns the
// root command.
//
// A subcommand uses the streams of its cobra command, and returns errors instead of printing them.
// Main prints the returned error and converts it to an exit code:
//
//   - 0: success
//   - 1: the command found problems, or failed
//   - 2: wrong usage
//   - 130: interrupted
package command
