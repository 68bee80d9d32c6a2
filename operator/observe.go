// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/internal/engine/managers"
	"github.com/ctrlkit/ctrlkit/internal/engine/metrics"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An Option changes what [Observe] adds.
type Option func(*options)

type options struct {
	page  bool
	each  metrics.PerObject
	kinds []client.Object
}

// WithPage also serves a live page about the operator, beside its metrics and with their protection
// (metricsserver.Options.FilterProvider): its kinds and controllers, its objects grouped by what is
// in their way, what can be done about each, and reconciles on an axis of time. "ctrlkit view"
// opens it.
//
//   - It lists the kinds that engines with the observers of the manager reconcile, from the cache
//     of the manager, in the form that the scheme has them: typed if it knows them.
//   - It shows names, conditions, errors, and which fields were written, as "ctrlkit explain" does,
//     and no values of objects.
//   - Without a viewer it counts reconciles and does nothing else.
func WithPage() Option { return func(o *options) { o.page = true } }

// WithObjectSeries also keeps two series for each object, from its first reconcile until a
// reconcile finds it gone:
//
//		ctrlkit_object_result{controller,namespace,name,result}
//		ctrlkit_object_failures{controller,namespace,name}
//
//	  - The first is 1 for the result of the last reconcile, the second is the number of failures
//	    in a row.
//	  - Their number is bounded only by that of the objects: use it for some thousand at most. An
//	    operator that filters out the deletions of its objects never finds them gone.
func WithObjectSeries() Option { return func(o *options) { o.each = metrics.PerObjectEach } }

// Observe makes the controllers of a manager observable. Call it once for each manager, before
// controllers are added; [Operator] does it. The manager then serves, beside its metrics and with
// their protection, what "ctrlkit explain" reads, and among its metrics the series of the package.
// [ObserversOf] finds the observers of the controllers. Under "ctrlkit run", it serves all that and
// the page of [WithPage] to that command, too.
//
// If the process is a shard, explanations name it, and there are series about it:
//
//		ctrlkit_shard_info{ring,shard}
//		ctrlkit_shard_lease_held{ring,shard}
//		ctrlkit_shard_handed_over_total{ring,shard}
//
//	  - The first is 1: join it to name the shard beside the other series of the process.
//	  - The second is 1 while the process may reconcile, and 0 otherwise.
//	  - The third is how many objects have moved away, on the request of the sharder.
func Observe(mgr manager.Manager, with ...Option) error {
	var chosen options
	for _, option := range with {
		option(&chosen)
	}
	chosen.page = chosen.page || os.Getenv(localhost.SocketVariable) != ""
	series, err := metrics.New(ctrlmetrics.Registry, metrics.Options{PerObject: chosen.each})
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	shard := managers.Of(mgr).Shard
	if shard != nil {
		if err := registerShard(shard); err != nil {
			return err
		}
	}
	ring := journal.NewRing(journal.RingOptions{})
	if err := explanation.Serve(mgr, ring, shard); err != nil {
		return fmt.Errorf("serving explanations: %w", err)
	}
	all := []journal.Observer{ring, series}
	if chosen.page {
		page, err := servePage(mgr, ring)
		if err != nil {
			return fmt.Errorf("serving the page: %w", err)
		}
		all = append(all, page)
	}
	if len(chosen.kinds) > 0 {
		if err := addObjects(mgr, chosen.kinds); err != nil {
			return err
		}
	}
	return managers.AddObserver(mgr, journal.Observers(all...))
}

// ObserversOf returns what observes the controllers of a manager, for the option Observers of an
// engine or of a registry of handlers. It is empty, and nothing is observed, if [Observe] was not
// called for the manager, as in many tests.
func ObserversOf(mgr manager.Manager) []journal.Observer { return managers.Of(mgr).Observers }
