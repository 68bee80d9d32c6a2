// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring has a dashboard for Grafana and alerts for Prometheus, dashboard.json and
// alerts.yaml. Its test shows that they use series and labels that an operator really has.
package monitoring
