// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of ctrlkit: one file per subcommand, put together by New.
//
// A subcommand takes its streams from the cobra command that it is given and returns errors instead of printing
// them; Main prints what is returned and turns it into an exit code: 0 when all is well, 1 when problems were found
// or something did not work, 2 when the command was used wrongly, 130 when it was interrupted.
package command
