// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
)

// WithObjects adds series about all objects of some kinds, given as empty objects, to the registry
// of controller-runtime. They are read from the cache of the manager when the series are collected:
// nothing is kept for an object, and a new process has them at once. Only the leader has them, so
// that sums over replicas are right.
//
//		ctrlkit_objects{kind,ready,reason,managed}
//		ctrlkit_objects_unready_oldest_timestamp_seconds{kind}
//		ctrlkit_objects_deleting{kind}
//		ctrlkit_objects_deleting_oldest_timestamp_seconds{kind}
//		ctrlkit_time_to_ready_seconds{kind}
//		ctrlkit_time_to_delete_seconds{kind}
//		ctrlkit_drifts_total{kind}
//
//	  - The values of ready are the status of the condition Ready, "None" without one; reason is
//	    its reason, and "other" for all but the 30 that most objects of the kind have.
//	  - Managed is the reason of the condition Managed of package external, which is the
//	    policy of the object; empty without one.
//	  - An object is unready since its creation, or since the last transition of Ready.
//	  - The two histograms have each time that an object became ready, or was gone, since the
//	    process leads; the counter has each transition of the condition Drifted to True.
//
// The error of [Observe] says that the manager does not know a kind, or that the registry has other
// series of these names.
func WithObjects(kinds ...client.Object) Option {
	return func(o *options) { o.kinds = append(o.kinds, kinds...) }
}

func addObjects(mgr manager.Manager, kinds []client.Object) error {
	o := newObjects()
	if err := ctrlmetrics.Registry.Register(o); err != nil {
		already, _ := errors.AsType[prometheus.AlreadyRegisteredError](err)
		existing, ours := already.ExistingCollector.(*objects)
		if !ours {
			return fmt.Errorf("registering metrics of objects: %w", err)
		}
		o = existing
	}
	for _, obj := range kinds {
		gvk, err := mgr.GetClient().GroupVersionKindFor(obj)
		if err != nil {
			return fmt.Errorf("kind of %T: %w: register it with the scheme of the manager", obj, err)
		}
		informer, err := mgr.GetCache().GetInformer(context.Background(), obj, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("the cache of %s: %w", gvk.Kind, err)
		}
		k := &objectsOfKind{objects: o, name: gvk.GroupKind().String(), object: obj, client: mgr.GetClient(), informer: informer, elected: mgr.Elected()}
		if _, err := informer.AddEventHandler(k); err != nil {
			return fmt.Errorf("the cache of %s: %w", gvk.Kind, err)
		}
		o.mu.Lock()
		o.kinds[k.name] = k
		o.mu.Unlock()
	}
	return nil
}

// mostReasons limits the series of a kind.
const mostReasons = 30

// objects are the series of all kinds.
type objects struct {
	count, unready, deleting, oldest *prometheus.Desc
	toReady, toDelete                *prometheus.HistogramVec
	drifts                           *prometheus.CounterVec

	mu    sync.Mutex // for kinds
	kinds map[string]*objectsOfKind
}

func newObjects() *objects {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("ctrlkit_objects"+name, help, append([]string{"kind"}, labels...), nil)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600},
		}, []string{"kind"})
	}
	return &objects{
		count:    desc("", "Objects, by the condition Ready and the policy.", "ready", "reason", "managed"),
		unready:  desc("_unready_oldest_timestamp_seconds", "Since when the object is not ready that has not been for longest. Absent while all are."),
		deleting: desc("_deleting", "Objects that are being deleted."),
		oldest:   desc("_deleting_oldest_timestamp_seconds", "Since when the object is being deleted that has been for longest. Absent while none is."),
		toReady:  histogram("ctrlkit_time_to_ready_seconds", "How long objects were not ready before they became ready."),
		toDelete: histogram("ctrlkit_time_to_delete_seconds", "How long objects were being deleted before they were gone."),
		drifts:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ctrlkit_drifts_total", Help: "How often a resource outside the cluster was found different from its object."}, []string{"kind"}),
		kinds:    map[string]*objectsOfKind{},
	}
}

// Describe implements [prometheus.Collector].
func (o *objects) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{o.count, o.unready, o.deleting, o.oldest} {
		to <- d
	}
	for _, c := range []prometheus.Collector{o.toReady, o.toDelete, o.drifts} {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (o *objects) Collect(to chan<- prometheus.Metric) {
	o.mu.Lock()
	kinds := slices.Collect(maps.Values(o.kinds))
	o.mu.Unlock()
	for _, k := range kinds {
		if k.leads() && k.informer.HasSynced() {
			k.collect(to)
		}
	}
	for _, c := range []prometheus.Collector{o.toReady, o.toDelete, o.drifts} {
		c.Collect(to)
	}
}

// objectsOfKind are those of one kind. It is a handler of their events.
type objectsOfKind struct {
	*objects
	name     string
	object   client.Object
	client   client.Client
	informer cache.Informer
	elected  <-chan struct{}
}

func (k *objectsOfKind) leads() bool {
	select {
	case <-k.elected:
		return true
	default:
		return false
	}
}

// A group is objects that are in one state.
type group struct{ ready, reason, managed string }

// collect counts the objects in the cache.
func (k *objectsOfKind) collect(to chan<- prometheus.Metric) {
	all, err := references.List(context.Background(), k.client, k.object, client.UnsafeDisableDeepCopy)
	if err != nil {
		return // the operator ends
	}
	counts := map[group]int{}
	var unready, deleting time.Time
	deleted := 0
	for _, obj := range all {
		g, since := stateOf(obj)
		counts[g]++
		if g.ready != string(metav1.ConditionTrue) {
			unready = earlier(unready, since)
		}
		if t := obj.GetDeletionTimestamp(); t != nil {
			deleted++
			deleting = earlier(deleting, t.Time)
		}
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{k.name}, labels...)...)
	}
	for g, n := range bounded(counts) {
		gauge(k.count, float64(n), g.ready, g.reason, g.managed)
	}
	gauge(k.deleting, float64(deleted))
	if !unready.IsZero() {
		gauge(k.unready, float64(unready.Unix()))
	}
	if !deleting.IsZero() {
		gauge(k.oldest, float64(deleting.Unix()))
	}
}

// bounded gives all but the most frequent reasons one name.
func bounded(counts map[group]int) map[group]int {
	reasons := map[string]int{}
	for g, n := range counts {
		reasons[g.reason] += n
	}
	kept := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	kept = kept[:min(len(kept), mostReasons)]
	all := make(map[group]int, len(counts))
	for g, n := range counts {
		if !slices.Contains(kept, g.reason) {
			g.reason = "other"
		}
		all[g] += n
	}
	return all
}

// stateOf returns the state of an object, and since when it has been ready, or not.
func stateOf(obj client.Object) (group, time.Time) {
	conditions, _ := condition.Of(obj) //nolint:errcheck // a kind without conditions has none
	g, since := group{ready: "None"}, obj.GetCreationTimestamp().Time
	if c := meta.FindStatusCondition(conditions, condition.Ready); c != nil {
		g.ready, g.reason = string(c.Status), c.Reason
		if c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	if c := meta.FindStatusCondition(conditions, "Managed"); c != nil {
		g.managed = c.Reason
	}
	return g, since
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

var _ toolscache.ResourceEventHandler = (*objectsOfKind)(nil)

// OnAdd implements [toolscache.ResourceEventHandler].
func (k *objectsOfKind) OnAdd(any, bool) {}

// OnUpdate implements [toolscache.ResourceEventHandler].
func (k *objectsOfKind) OnUpdate(before, now any) {
	from, ok := before.(client.Object)
	to, isObject := now.(client.Object)
	if !ok || !isObject || !k.leads() || from.GetUID() != to.GetUID() || from.GetResourceVersion() == to.GetResourceVersion() {
		return
	}
	was, since := stateOf(from)
	is, at := stateOf(to)
	if is.ready == string(metav1.ConditionTrue) && was.ready != is.ready {
		k.toReady.WithLabelValues(k.name).Observe(at.Sub(since).Seconds())
	}
	if drifted(to) && !drifted(from) {
		k.drifts.WithLabelValues(k.name).Inc()
	}
}

// drifted reports whether the resource that an object stands for is not as it should be.
func drifted(obj client.Object) bool {
	conditions, err := condition.Of(obj)
	return err == nil && meta.IsStatusConditionTrue(conditions, "Drifted")
}

// OnDelete implements [toolscache.ResourceEventHandler].
func (k *objectsOfKind) OnDelete(last any) {
	if obj, ok := last.(client.Object); ok && k.leads() && obj.GetDeletionTimestamp() != nil {
		k.toDelete.WithLabelValues(k.name).Observe(time.Since(obj.GetDeletionTimestamp().Time).Seconds())
	}
}
