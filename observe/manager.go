// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/explain"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/journal/metrics"
)

// Manager returns an observer for all engines of a manager: a [journal.Ring] that [explain.Serve]
// serves, and series in the registry of controller-runtime. Call it once for each manager, before
// the manager is started.
func Manager(mgr manager.Manager, with ...Option) (journal.Observer, error) {
	var chosen options
	for _, option := range with {
		option(&chosen)
	}
	series, err := metrics.New(ctrlmetrics.Registry, metrics.Options{})
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if chosen.shard != nil {
		if err := registerShard(chosen.shard); err != nil {
			return nil, err
		}
	}
	ring := journal.NewRing(journal.RingOptions{})
	if err := explain.Serve(mgr, ring, explain.WithShard(chosen.shard)); err != nil {
		return nil, fmt.Errorf("serving explanations: %w", err)
	}
	if !chosen.page {
		return journal.Observers(ring, series), nil
	}
	page, err := servePage(mgr, ring)
	if err != nil {
		return nil, fmt.Errorf("serving the page: %w", err)
	}
	return journal.Observers(ring, series, page), nil
}
