// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Scope says whether a kind has namespaces. The answer is kept when it is known, which it is not for
// a kind that the API server does not have yet. It is safe for concurrent use.
type Scope struct {
	client client.Client
	object client.Object // of the kind

	known atomic.Pointer[bool]      // nil while it is not known
	asked atomic.Pointer[time.Time] // nil before
}

// NewScope returns the scope of the kind of an object.
func NewScope(c client.Client, of client.Object) *Scope { return &Scope{client: c, object: of} }

// askAgain is how often the API server is asked for a kind that it does not have.
const askAgain = 10 * time.Second

// Known returns whether the kind has namespaces, and whether that is known. A nil scope never is.
func (s *Scope) Known() (namespaced, known bool) {
	if s == nil {
		return false, false
	}
	if asked := s.asked.Load(); s.known.Load() == nil && (asked == nil || time.Since(*asked) >= askAgain) {
		s.ask()
	}
	if is := s.known.Load(); is != nil {
		return *is, true
	}
	return false, false
}

// Namespaced reports whether the kind has namespaces, as most have: also one that is not known.
func (s *Scope) Namespaced() bool {
	if s.known.Load() == nil {
		s.ask()
	}
	is := s.known.Load()
	return is == nil || *is
}

// ask asks the API server, if the client does not know. No lock is held meanwhile.
func (s *Scope) ask() {
	is, err := s.client.IsObjectNamespaced(s.object)
	if err == nil {
		s.known.Store(&is)
	}
	s.asked.Store(new(time.Now()))
}
