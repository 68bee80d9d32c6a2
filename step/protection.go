// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A protection is what this process knows of our finalizer on an object, and of objects of the same
// name that were removed without our cleanup. Reconciles write it, and the events of the watch read
// it.
type protection[T client.Object] struct {
	mu       sync.Mutex // for all below
	uid      types.UID
	sent     bool     // we have written our finalizer to the object, or seen it there
	held     string   // the resource version with which our finalizer was last seen on the object
	released bool     // another client has removed it
	noted    bool     // and the object has the annotation that records it
	cleaned  bool     // the cleanup was done
	past     *past[T] // nil for nearly all
}

// past is what is known of earlier objects of the same name.
type past[T client.Object] struct {
	dropped types.UID // of the object whose cleanup was last done from its last state
	orphans []T       // the last states of objects that were removed without our cleanup
}

// startFor begins anew for another object of the same name. Orphans stay.
func (p *protection[T]) startFor(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uid, p.sent, p.cleaned, p.held, p.released, p.noted = uid, false, false, "", false, false
}

// setSent notes that our finalizer is being written to the object.
func (p *protection[T]) setSent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = true
}

// setHeld notes that the object had our finalizer in a version.
func (p *protection[T]) setHeld(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent, p.held, p.released = true, version, false
}

// setReleased notes that another client has removed our finalizer, and reports whether that is new.
func (p *protection[T]) setReleased() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.released
	p.release()
	return first
}

// release is setReleased for a caller that has the lock.
func (p *protection[T]) release() { p.released, p.sent, p.held = true, false, "" }

func (p *protection[T]) isReleased() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.released
}

// wasHeld reports whether the object had our finalizer, as far as this process knows.
func (p *protection[T]) wasHeld() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held != "" || p.released
}

func (p *protection[T]) setCleaned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleaned = true
}

func (p *protection[T]) isCleaned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cleaned
}

// isRemoved reports whether another client has removed our finalizer from an object that is not
// being deleted and does not have it in version: it was seen there before, or the object has the
// annotation that records it.
func (p *protection[T]) isRemoved(version string, annotated bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case annotated:
		p.release()
		p.noted = true
		return true
	case p.released && p.noted: // the annotation was removed: the finalizer is wanted again
		p.released, p.noted = false, false
		return false
	case p.released: // the annotation is not written yet
		return true
	}
	return p.held != "" && !older(version, p.held)
}

// gone decides what an object that is gone needs, whose last state is last: a cleanup is pending,
// which keeps the state as an orphan, or another client has removed our finalizer, and that is new.
// Final and protected are as for fate.
func (p *protection[T]) gone(last T, final, protected bool) (pending, released bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pending, released = p.fate(last, final, protected)
	if pending {
		if p.past == nil {
			p.past = &past[T]{}
		}
		p.past.orphans = append(p.past.orphans, last)
	}
	if released {
		p.release()
	}
	return pending, released
}

// fate returns what became of an object that is gone and that we have not released: its cleanup is
// pending, or another client has removed our finalizer, or neither. Final says that last is the
// state in which the object was deleted, not one that the cache had before; protected, that it has
// our finalizer.
//
// An object is removed at once, or when its last finalizer is removed. If it is removed at once
// although it has our finalizer, the finalizer was lost in a race with the deletion: the cleanup is
// pending. In all other cases another client has removed the finalizer, which is a decision.
func (p *protection[T]) fate(last T, final, protected bool) (pending, released bool) {
	known := p.uid == last.GetUID()
	switch {
	case known && (p.cleaned || p.released):
		return false, false
	case !last.GetDeletionTimestamp().IsZero():
		return false, known && (protected || p.sent)
	case protected:
		return true, false
	case !known || !p.sent:
		return false, false
	case p.held != "" && !older(last.GetResourceVersion(), p.held):
		return false, true // it was there, and is not any more
	default:
		return !final, false // we have tried to add it; only the final state shows whether it was there
	}
}

// isPending reports whether a cleanup is pending for the object, whose last state has not been
// seen.
func (p *protection[T]) isPending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent && !p.cleaned && (p.past == nil || p.past.dropped != p.uid)
}

func (p *protection[T]) hasOrphans() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.past != nil && len(p.past.orphans) > 0
}

func (p *protection[T]) firstOrphan() (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past == nil || len(p.past.orphans) == 0 {
		var none T
		return none, false
	}
	return p.past.orphans[0], true
}

// dropOrphan drops the first orphan, whose cleanup was done.
func (p *protection[T]) dropOrphan() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past.dropped = p.past.orphans[0].GetUID()
	p.past.orphans = p.past.orphans[1:]
}

// dropOrphansOf drops the orphans that are one object, which exists.
func (p *protection[T]) dropOrphansOf(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.past != nil {
		p.past.orphans = slices.DeleteFunc(p.past.orphans, func(o T) bool { return o.GetUID() == uid })
	}
}
