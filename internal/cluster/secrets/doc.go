// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package secrets knows which texts are values of Secrets, and finds them wherever they were
// written: as they are, and in every form in which Go, kubectl, URLs, YAML and shells write them.
// Whatever leaves the cluster through this project (recordings, plans, explanations) asks it.
//
//	var values secrets.Values
//	values.Add(secret)
//	values.Redact(`{"url":"postgres://u:p%40ss@db"}`) // {"url":"postgres://u:(hidden)@db"}
//
// A text is searched as it is, and again without one level of each kind of escapes, until there is
// nothing to remove: a list of forms would lack the next combination. A part of a value is not
// found, nor is its hash.
package secrets
