// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Feed counts the changes that the watches of a controller report. As long as no count that
// concerns an object or a list has grown, the cache has had no change of it that a watch has
// reported. Its zero value has counted nothing, and is safe for concurrent use.
//
// Names share counts, so that the memory does not depend on the number of objects: an object whose
// count has grown may be unchanged, and is compared.
type Feed struct {
	types sync.Map // of reflect.Type: *counts
}

// stripes is how many counts the objects of a type share. It is a power of two.
const stripes = 1 << 12

// counts are the changes of the objects of one type. They never shrink, so that a sum of them is the
// same only if each of them is.
type counts struct {
	all atomic.Uint64 // of all objects
	by  [stripes]atomic.Uint64
}

// Changed counts a change of an object: its creation and its deletion, too. It is called before the
// change triggers a reconcile.
func (f *Feed) Changed(obj client.Object) {
	if standsForAny(obj) { // it is in another cache than objects of the Go type
		return
	}
	t := reflect.TypeOf(obj)
	found, ok := f.types.Load(t)
	if !ok {
		found, _ = f.types.LoadOrStore(t, new(counts))
	}
	c := found.(*counts) //nolint:errcheck // nothing else is in the map
	c.by[stripeOf(obj.GetNamespace(), obj.GetName())].Add(1)
	c.by[stripeOf(obj.GetNamespace(), "")].Add(1)
	c.all.Add(1)
}

// of returns the counts of a type, nil if no watch has reported an object of it yet.
func (f *Feed) of(t reflect.Type) *counts {
	found, ok := f.types.Load(t)
	if !ok {
		return nil
	}
	return found.(*counts) //nolint:errcheck // nothing else is in the map
}

// ofObject returns a number that grows when an object changes. A reader ignores the namespace in
// the key of an object that has none, so that this counts both names.
func (c *counts) ofObject(key client.ObjectKey) uint64 {
	sum := c.by[stripeOf(key.Namespace, key.Name)].Load()
	if key.Namespace != "" {
		sum += c.by[stripeOf("", key.Name)].Load()
	}
	return sum
}

// ofList returns a number that grows when an object changes that may be in a list: of one
// namespace, or of all.
func (c *counts) ofList(namespace string) uint64 {
	if namespace == "" {
		return c.all.Load()
	}
	return c.by[stripeOf(namespace, "")].Load() + c.by[stripeOf("", "")].Load()
}

// Count returns a number that is the same as long as the feed has counted no change: neither of
// the object of that key, which is of the type of obj, nor of the inputs. It returns false if it
// can't know: an input is of a type that no watch reports.
//
// It is taken before anything is read that it stands for: a change that comes later makes it grow.
func (f *Feed) Count(obj runtime.Object, key client.ObjectKey, in *Inputs) (sum uint64, ok bool) {
	t := reflect.TypeOf(obj)
	c := f.of(t)
	if c == nil || in == nil || in.unknown {
		return 0, false
	}
	sum = c.ofObject(key)
	for i := range in.all {
		input := &in.all[i]
		if other := input.object(); other == nil {
			return 0, false
		} else if other != t {
			if t, c = other, f.of(other); c == nil {
				return 0, false
			}
		}
		if input.list != nil {
			sum += c.ofList(input.key.Namespace)
		} else {
			sum += c.ofObject(input.key)
		}
	}
	return sum, true
}

// stripeOf returns the place of a name among the counts: the FNV-1a hash, which hash/fnv would
// allocate for.
func stripeOf(namespace, name string) int {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(namespace) {
		h = (h ^ uint64(namespace[i])) * prime
	}
	h *= prime // a byte of zero between them
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return int((h ^ h>>32) & (stripes - 1))
}
