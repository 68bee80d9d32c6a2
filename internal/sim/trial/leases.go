// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// Leases are the resource by which operators elect a leader.
var Leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// ReleaseLeases deletes the Leases of a cluster in memory after the processes that held them have
// ended. Otherwise the next process does nothing until they expire.
func ReleaseLeases(c *memory.Cluster) {
	for _, o := range c.Objects() {
		if o.Resource.GroupResource() == Leases.GroupResource() {
			_ = Delete(c, Leases, o.Namespace, o.Name) //nolint:errcheck // it may have gone
		}
	}
}
