// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command probe derives the rules by which the API server of the simulator validates built-in
// kinds. It changes one field at a time of valid objects, passes each to the strategies of the real
// API server, which it compiles, and generalizes the refusals into a table.
//
// Run it by `go generate ./internal/sim/apiserver/internal/builtin`. It reads testdata/samples.yaml there,
// and writes
//   - rules.json, one rule per line: what a field requires, in the words of the real server;
//   - testdata/probes.jsonl.gz: the probes with the real answers, by which the tests of that package
//     compare what the rules answer.
//
// A rule is kept only if all probes of all samples agree on it. What depends on several fields is
// not generalized: package builtin has it as code, and the same probes verify it.
package main
