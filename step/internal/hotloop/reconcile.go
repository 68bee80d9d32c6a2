// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package hotloop

import (
	"time"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A Reconcile is what the detector needs to know of a reconcile that ends.
type Reconcile struct {
	Record   *track.Record
	Disputes Disputes
	Self     journal.Object // the reconciled object
	Owner    string         // the field owner of the engine

	Generation int64
	Policies   map[string]string // the annotations of package policy that were read
	Version    string            // the resource version that was read
	Began      string            // the version after our last write before the reconcile
	Written    string            // the version after our last write now

	Requested bool // the reconcile runs because of a time that was requested
	Failed    bool
	Now       time.Time
}

// lastWrite returns the last write to the object, or else the last to any other, nil if there was
// none.
func (r *Reconcile) lastWrite() *track.Write {
	var last *track.Write
	for _, w := range r.Record.Writes() {
		if last == nil || last.Object != r.Self || w.Object == r.Self {
			last = w
		}
	}
	return last
}
