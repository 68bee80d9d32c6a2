// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe is what most operators want to know of themselves, in one line:
//
//	observer, err := observe.Manager(mgr)
//	...
//	engine, err := step.New(step.Options[*v1.Database]{..., Observers: []journal.Observer{observer}}, ...)
//
// Beside its metrics the manager then serves what "ctrlkit explain" reads, and among its metrics the series of package journal/metrics. Traces need a
// provider of the operator's choice and are added by hand, as is anything else that wants other options.
package observe
