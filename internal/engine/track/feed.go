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

// A Feed numbers the changes that the watches of a controller report. As long as no change that
// concerns an object or a list has a higher number than a stamp, the cache is as it was when the
// stamp was taken, as far as a watch has reported. Its zero value has had no change, and is safe
// for concurrent use.
//
// Names share numbers, so that the memory does not depend on the number of objects: an object
// whose number is higher may be unchanged, and is compared.
type Feed struct {
	last  atomic.Uint64 // the number of the last change
	types sync.Map      // of reflect.Type: *latest
}

// A Stamp is a time, in changes that a feed has had. The zero value is before all.
type Stamp uint64

// stripes is how many numbers the objects of a type share. It is a power of two.
const stripes = 1 << 12

// latest are the numbers of the last changes of the objects of one type. They never fall.
type latest struct {
	all atomic.Uint64 // of any object
	by  [stripes]atomic.Uint64
}

// Changed notes a change of an object: its creation and its deletion, too. It is called after the
// cache has it, and before it triggers a reconcile.
func (f *Feed) Changed(obj client.Object) {
	if standsForAny(obj) { // it is in another cache than objects of the Go type
		return
	}
	t := reflect.TypeOf(obj)
	found, ok := f.types.Load(t)
	if !ok {
		found, _ = f.types.LoadOrStore(t, new(latest))
	}
	l := found.(*latest) //nolint:errcheck // nothing else is in the map
	n := f.last.Add(1)
	raise(&l.by[stripeOf(obj.GetNamespace(), obj.GetName())], n)
	raise(&l.by[stripeOf(obj.GetNamespace(), "")], n)
	raise(&l.all, n)
}

// raise makes a number at least n. Two changes may come in another order than their numbers.
func raise(number *atomic.Uint64, n uint64) {
	for old := number.Load(); old < n; old = number.Load() {
		if number.CompareAndSwap(old, n) {
			return
		}
	}
}

// Now returns the stamp of what is read from now on: a change that comes later is newer.
func (f *Feed) Now() Stamp { return Stamp(f.last.Load()) }

// of returns the numbers of a type, nil if no watch has reported an object of it yet.
func (f *Feed) of(t reflect.Type) *latest {
	found, ok := f.types.Load(t)
	if !ok {
		return nil
	}
	return found.(*latest) //nolint:errcheck // nothing else is in the map
}

// ofObject returns the number of the last change of an object. A reader ignores the namespace in
// the key of an object that has none, so that this is for both names.
func (l *latest) ofObject(key client.ObjectKey) uint64 {
	last := l.by[stripeOf(key.Namespace, key.Name)].Load()
	if key.Namespace != "" {
		last = max(last, l.by[stripeOf("", key.Name)].Load())
	}
	return last
}

// ofList returns the number of the last change of an object that may be in a list: of one
// namespace, or of all.
func (l *latest) ofList(namespace string) uint64 {
	if namespace == "" {
		return l.all.Load()
	}
	return max(l.by[stripeOf(namespace, "")].Load(), l.by[stripeOf("", "")].Load())
}

// UnchangedSince reports whether no watch has reported a change since a stamp: neither of the
// object of that key, which is of the type of obj, nor of the inputs. It returns false, too, if it
// can't know: an input is of a type of which no watch has reported an object.
func (f *Feed) UnchangedSince(stamp Stamp, obj runtime.Object, key client.ObjectKey, in *Inputs) bool {
	t := reflect.TypeOf(obj)
	l := f.of(t)
	if l == nil || in == nil || in.unknown || l.ofObject(key) > uint64(stamp) {
		return false
	}
	for i := range in.all {
		input := &in.all[i]
		if input.number != nil {
			if input.number.now() != input.number.then {
				return false
			}
			continue
		}
		if other := input.object(); other == nil {
			return false
		} else if other != t {
			if t, l = other, f.of(other); l == nil {
				return false
			}
		}
		last := uint64(0)
		if input.list != nil {
			last = l.ofList(input.key.Namespace)
		} else {
			last = l.ofObject(input.key)
		}
		if last > uint64(stamp) {
			return false
		}
	}
	return true
}

// stripeOf returns the place of a name among the numbers: the FNV-1a hash, which hash/fnv would
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
