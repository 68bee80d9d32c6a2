// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/sharding"
)

// WithShard names the shard of this process in what "ctrlkit explain" shows, and adds series about it.
// A nil shard adds nothing.
//
//		ctrlkit_shard_info{ring,shard}
//		ctrlkit_shard_lease_held{ring,shard}
//		ctrlkit_shard_handed_over_total{ring,shard}
//
//	  - The first is 1: join it to name the shard beside the other series of the process.
//	  - The second is 1 while the process may reconcile, and 0 otherwise.
//	  - The third is how many objects have moved away, on the request of the sharder.
func WithShard(shard *sharding.Shard) Option { return func(o *options) { o.shard = shard } }

// registerShard registers the series of a shard.
func registerShard(shard *sharding.Shard) error {
	names := prometheus.Labels{"ring": shard.Ring(), "shard": shard.Name()}
	all := []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ctrlkit_shard_info", Help: "The shard that this process is.", ConstLabels: names}, func() float64 { return 1 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ctrlkit_shard_lease_held", Help: "Whether the shard holds its Lease, and may reconcile.", ConstLabels: names}, func() float64 {
			if shard.Holds() {
				return 1
			}
			return 0
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "ctrlkit_shard_handed_over_total", Help: "Objects that were handed over to other shards.", ConstLabels: names}, func() float64 { return float64(shard.HandedOver()) }),
	}
	for _, c := range all {
		if err := ctrlmetrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering metrics of the shard: %w", err)
		}
	}
	return nil
}
