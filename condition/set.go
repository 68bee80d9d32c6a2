// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Set holds the conditions of one object during one reconcile. It is safe for concurrent use:
// actions of a workflow and steps of a group may set conditions at the same time. If two of them
// set the same condition, the later one wins.
type Set struct {
	declared declarations
	partial  bool

	mu         sync.Mutex // for all below
	list       list
	stored     []metav1.Condition  // as they were stored last; nil if they were not
	severities map[string]Severity // of what was set in this reconcile and is not healthy
	set        map[string]bool     // what was set in this reconcile
	doubted    map[string]bool     // what became Unknown because its step has failed
	failure    *failed
}

// Options describe the conditions of a kind, and the reconcile.
type Options struct {
	// Declared are the conditions that can be set. Those that the object does not have are added as
	// Unknown.
	Declared []Declaration
	// Retired are the types of conditions that an older version of the operator has set. They are
	// removed, unless they are declared or computed.
	Retired []string
	// Partial is for one of several authors of the conditions of an object: those that the object
	// has keep their places, and new ones follow them. Two authors who put their own ones first
	// would change the object for ever.
	Partial bool
	// Now is the transition time of what changes; the present if it is zero.
	Now time.Time
}

// NewSet returns the conditions of obj, without those that are retired and without all but the
// first of a type that is declared or computed. The error is [ErrNone] if obj can't have
// conditions.
func NewSet(obj metav1.Object, options Options) (*Set, error) {
	conditions, err := Of(obj)
	if err != nil {
		return nil, err
	}
	now := options.Now
	if now.IsZero() {
		now = time.Now()
	}
	s := &Set{declared: options.Declared, partial: options.Partial, list: list{
		before: slices.Clone(conditions), generation: obj.GetGeneration(), now: metav1.NewTime(now.Truncate(time.Second)),
	}}
	for _, c := range s.list.before {
		twice := s.list.find(c.Type) != nil
		if owned := s.declared.owns(c.Type); owned && twice || !owned && slices.Contains(options.Retired, c.Type) {
			continue
		}
		s.list.items = append(s.list.items, c)
	}
	for _, d := range s.declared {
		if s.list.find(d.Type) == nil {
			s.list.put(d.Type, metav1.ConditionUnknown, ReasonNotReached, "not evaluated yet")
		}
	}
	return s, nil
}

// Declared reports whether a type is declared.
func (s *Set) Declared(conditionType string) bool { return s.declared.has(conditionType) }

// Get returns a condition as it is now, and whether the set has it.
func (s *Set) Get(conditionType string) (metav1.Condition, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.list.find(conditionType); c != nil {
		return *c, true
	}
	return metav1.Condition{}, false
}

// Conditions returns the conditions in the order in which they are stored: the computed ones first,
// then the declared ones, then those of other controllers in the order in which they were. Those of
// a partial set are in the order in which they were, too.
func (s *Set) Conditions() []metav1.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted()
}

func (s *Set) sorted() []metav1.Condition {
	sorted := slices.Clone(s.list.items)
	if s.partial {
		return sorted
	}
	slices.SortStableFunc(sorted, func(a, b metav1.Condition) int {
		return s.declared.rank(a.Type) - s.declared.rank(b.Type)
	})
	return sorted
}

// Store gives obj the conditions.
func (s *Set) Store(obj any) error {
	s.mu.Lock()
	s.stored = s.sorted()
	conditions := slices.Clone(s.stored)
	s.mu.Unlock()
	return Store(obj, conditions)
}
