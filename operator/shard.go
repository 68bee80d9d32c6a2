// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/internal/engine/managers"
	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
)

// A Shard is the part of a ring that this process has. [NewShardManager] makes it, and [ShardOf]
// finds it, for the options Shard of engines and of registries of handlers. They alone need most of
// its methods; Name, Ring, Holds and String are for reports about it. A nil *Shard is that
// of an operator without a ring: every object is its own. It is safe for concurrent use.
type Shard = shard.Shard

// ShardOptions are options of [NewShardManager].
type ShardOptions struct {
	// Ring is the name of the ControllerRing. If it is empty, nothing is shared: NewShardManager
	// returns the manager that NewManager makes, and no shard.
	Ring string

	// Name is the name of the shard, and of its Lease: a DNS name of at most 63 characters, unique
	// in the ring. By default it is the name of the host, which is that of the Pod in a cluster.
	Name string

	// Namespace is that of the Lease. By default it is LeaderElectionNamespace of the options of
	// the manager, and in a cluster that of the Pod.
	Namespace string
}

// NewShardManager returns a manager whose process is a shard of a ring, and the shard, so that the
// replicas of an operator share the work: each reconciles, and caches, a part of the objects. It is
// the shard's side of the protocol of [kubernetes-controller-sharding], whose sharder assigns
// objects to shards and moves them when a replica comes or goes. The ring is a ControllerRing of
// that project.
//
//   - It holds a Lease of its own instead of that of a leader, and reconciles only while it does.
//     When it ends, it gives the Lease back after its last reconcile.
//   - Its caches have, of each kind of the ring, the objects that are assigned to it, and no
//     others. They keep the limits that they have. Kinds that the ring does not list are cached
//     whole.
//   - Before an object moves, the sharder asks for it with a label. The shard removes the labels
//     when no reconcile of the object runs, in one write, and forgets what it knew of the object.
//   - After its Lease has expired it begins nothing and writes nothing, as [NewManager] says of
//     leaders.
//   - Without the sharder, new objects belong to no shard.
//
// In the options of the manager, the durations of leader election are those of the Lease of the
// shard. There is no leader, and no LeaderElectionID is needed. Nothing else changes.
//
// The ring is read once, here: after a change of its resources the replicas have to be restarted.
// The error says what is wrong with it, or with the names, and what to do. The manager ends with an
// error soon after its start if the ring assigns objects of a kind that no controller hands over.
//
// The operator needs the verb get for controllerrings.sharding.timebertt.dev, and get, create and
// update for Leases, as for leader election.
//
// [kubernetes-controller-sharding]: https://github.com/timebertt/kubernetes-controller-sharding
func NewShardManager(config *rest.Config, options ctrl.Options, of ShardOptions) (ctrl.Manager, *Shard, error) {
	if of.Ring == "" {
		mgr, err := NewManager(config, options)
		return mgr, nil, err
	}
	mgr, ours, err := shard.NewManager(config, options, shard.Options(of))
	if err != nil {
		return nil, nil, err
	}
	return mgr, ours, managers.SetShard(mgr, ours)
}

// ShardOf returns the shard that a manager of [NewShardManager], or of an [Operator], is; nil if it
// is none, which the options of engines and of registries take, too.
func ShardOf(mgr manager.Manager) *Shard { return managers.Of(mgr).Shard }

// registerShard registers the series of a shard.
func registerShard(of *Shard) error {
	names := prometheus.Labels{"ring": of.Ring(), "shard": of.Name()}
	all := []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ctrlkit_shard_info", Help: "The shard that this process is.", ConstLabels: names}, func() float64 { return 1 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ctrlkit_shard_lease_held", Help: "Whether the shard holds its Lease, and may reconcile.", ConstLabels: names}, func() float64 {
			if of.Holds() {
				return 1
			}
			return 0
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "ctrlkit_shard_handed_over_total", Help: "Objects that were handed over to other shards.", ConstLabels: names}, func() float64 { return float64(of.HandedOver()) }),
	}
	for _, c := range all {
		if err := ctrlmetrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering metrics of the shard: %w", err)
		}
	}
	return nil
}
