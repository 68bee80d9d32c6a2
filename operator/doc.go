// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package observe adds to an operator, in one line, the observers that most operators want:
//
//	observer, err := observe.Manager(mgr)
//	...
//	engine, err := step.New(step.Options[*v1.Database]{
//		...,
//		Observers: []journal.Observer{observer},
//	}, ...)
//
// The manager then serves, beside its metrics, what "ctrlkit explain" reads, and among its metrics
// the series of package journal/metrics. Add traces by hand, which need a provider of your choice,
// as well as observers with other options. It is a package of its own because it links the series,
// which neither package explain nor a journal needs.
package operator
