// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
)

// The labels of the protocol.
const (
	ringLabel        = "alpha.sharding.timebertt.dev/controllerring" // on Leases
	shardLabelPrefix = "shard.alpha.sharding.timebertt.dev/"
	drainLabelPrefix = "drain.alpha.sharding.timebertt.dev/"
)

// A Shard is the part of a ring that this process has. [NewManager] makes it. A nil *Shard is that of
// an operator without a ring: every object is its own. It is safe for concurrent use.
type Shard struct {
	name, ring string
	tenure     tenure.Tenure
	main       map[schema.GroupKind]bool // whose objects are assigned
	controlled map[schema.GroupKind]bool // whose objects follow their controllers
	drained    atomic.Int64

	mu          sync.Mutex // for all below
	controllers map[schema.GroupKind]string
	handed      map[object]*handover
}

// An object is the name of one.
type object struct {
	kind schema.GroupKind
	key  client.ObjectKey
}

// A handover is what is known of an object that this shard has handed over, until its cache has
// noticed.
type handover struct {
	version string // after the write
	left    bool   // the watch has reported that the object has left the cache
}

// Name returns the name of the shard, empty without a ring.
func (s *Shard) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Ring returns the name of the ring, empty without one.
func (s *Shard) Ring() string {
	if s == nil {
		return ""
	}
	return s.ring
}

// Holds reports whether the Lease of the shard is held: only then it may reconcile.
func (s *Shard) Holds() bool { return s == nil || s.tenure.Holds() }

// HandedOver returns how many objects the shard has handed over since the process started.
func (s *Shard) HandedOver() int64 {
	if s == nil {
		return 0
	}
	return s.drained.Load()
}

// Label returns the label that objects have which are assigned to a shard of the ring.
func (s *Shard) Label() string { return shardLabelPrefix + s.ring }

// DrainLabel returns the label of objects that their shard has to hand over.
func (s *Shard) DrainLabel() string { return drainLabelPrefix + s.ring }

// Selects returns what a cache of a kind has to select: what selector does, and of kinds of the ring
// only the objects of this shard. Selector may be nil.
func (s *Shard) Selects(kind schema.GroupKind, selector labels.Selector) labels.Selector {
	if s == nil || !s.main[kind] && !s.controlled[kind] {
		return selector
	}
	if selector == nil {
		selector = labels.Everything()
	}
	ours, _ := labels.SelectorFromSet(labels.Set{s.Label(): s.name}).Requirements()
	return selector.DeepCopySelector().Add(ours...)
}

// Claim notes that a controller reconciles the objects of a kind, and asks [Shard.Check] each time.
// Only one may: of two, one would hand over what the other one still reconciles. The error says
// that there is another one, or that the ring does not assign objects of the kind.
func (s *Shard) Claim(kind schema.GroupKind, controller string) error {
	if s == nil {
		return nil
	}
	if !s.main[kind] {
		return fmt.Errorf("controller %q: the ring %q assigns no %s, only %s: add it to spec.resources of the ControllerRing, or reconcile it by an operator without this ring",
			controller, s.ring, kind, names(s.main))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, taken := s.controllers[kind]; taken && other != controller {
		return fmt.Errorf("controller %q: controller %q of this process reconciles %s, too, and each object of a ring has one: make them steps of one engine, or handlers of one registry",
			controller, other, kind)
	}
	s.controllers[kind] = controller
	return nil
}

// unclaimed returns the kinds of the ring that no controller has claimed.
func (s *Shard) unclaimed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := make(map[schema.GroupKind]bool)
	for kind := range s.main {
		if _, ok := s.controllers[kind]; !ok {
			rest[kind] = true
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return strings.Split(names(rest), ", ")
}

func names(kinds map[schema.GroupKind]bool) string {
	var all []string
	for kind := range kinds {
		all = append(all, kind.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// A Verdict says what is to be done with an object.
type Verdict int

const (
	// VerdictNone comes with an error.
	VerdictNone Verdict = iota
	// VerdictOurs: reconcile it.
	VerdictOurs
	// VerdictElsewhere: it is not assigned to this shard, or was handed over and the cache lacks that.
	// Leave it alone.
	VerdictElsewhere
	// VerdictDrained: the call has just handed it over. Forget it.
	VerdictDrained
	// VerdictExpired: the Lease has expired, so that any object may be another shard's. Do nothing.
	VerdictExpired
)

// Check says whether an object may be reconciled now, and hands it over if the sharder asks for it.
// Obj is as the cache has it. A controller calls it before each reconcile, for one object never twice
// at once, so that no reconcile of the object runs when it is handed over.
//
// It writes only to hand over: once, and both labels. The error is that of the write; after a
// conflict the cache will have a newer version.
func (s *Shard) Check(ctx context.Context, c client.Writer, kind schema.GroupKind, obj client.Object) (Verdict, error) {
	switch {
	case s == nil:
		return VerdictOurs, nil
	case !s.Holds():
		return VerdictExpired, nil
	case obj.GetLabels()[s.Label()] != s.name, s.isStale(kind, obj):
		return VerdictElsewhere, nil
	}
	if _, drains := obj.GetLabels()[s.DrainLabel()]; !drains {
		return VerdictOurs, nil
	}
	return s.handOver(ctx, c, kind, obj)
}

// isStale reports whether the cache shows an object as it was before it was handed over. One that
// has come back is newer.
func (s *Shard) isStale(kind schema.GroupKind, obj client.Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := object{kind, client.ObjectKeyFromObject(obj)}
	h := s.handed[id]
	if h == nil {
		return false
	}
	if order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), h.version); err == nil && order < 0 {
		return true
	}
	delete(s.handed, id)
	return false
}

// handOver removes the labels from an object. Without them the sharder assigns it anew, maybe in the
// same write, and maybe to this shard again.
func (s *Shard) handOver(ctx context.Context, c client.Writer, kind schema.GroupKind, obj client.Object) (Verdict, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(),
		"labels": map[string]any{s.Label(): nil, s.DrainLabel(): nil},
	}})
	if err != nil {
		return VerdictNone, err
	}
	answer := obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	id := object{kind, client.ObjectKeyFromObject(obj)}
	err = c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsNotFound(err):
		return VerdictElsewhere, nil
	case err != nil:
		return VerdictNone, fmt.Errorf("handing over to the ring %q: %w", s.ring, err)
	}
	s.drained.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed[id] = &handover{version: answer.GetResourceVersion()}
	return VerdictDrained, nil
}

// Left notes that a watch has reported an object as deleted, and reports whether it only moved, as
// far as this shard knows: it has handed it over, or it was not its own. An object that another
// client has taken the label from is deleted, by what a watch reports.
func (s *Shard) Left(kind schema.GroupKind, last client.Object) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.handed[object{kind, client.ObjectKeyFromObject(last)}]; h != nil {
		h.left = true
		return true
	}
	return last.GetLabels()[s.Label()] != s.name
}

// Moves reports whether the shard has handed an object over, and its cache has not lost it yet or has it
// again: what was known of the object is not true any more.
func (s *Shard) Moves(kind schema.GroupKind, key client.ObjectKey) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handed[object{kind, key}] != nil
}

// Forget notes that a reconcile did not find an object, and drops what is known of it. It reports
// whether the object was handed over, rather than deleted.
func (s *Shard) Forget(kind schema.GroupKind, key client.ObjectKey) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.handed[object{kind, key}]
	if h != nil && h.left {
		delete(s.handed, object{kind, key})
	}
	return h != nil
}

// String returns the names of the shard and of its ring, for people.
func (s *Shard) String() string {
	if s == nil {
		return "no shard"
	}
	return fmt.Sprintf("shard %q of ring %q", cmp.Or(s.name, "?"), s.ring)
}
