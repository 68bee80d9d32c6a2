// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics keeps Prometheus series from a journal: how reconciles end and what caused them,
// how long steps and actions take, what fails, what is written. Package operator says what they
// mean, and registers them with controller-runtime.
package metrics
