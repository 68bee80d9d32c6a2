// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/memory"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// ReleaseLeases deletes the Leases of a cluster in memory after the processes that held them have
// ended. Otherwise the next process does nothing until they expire.
func ReleaseLeases(c *memory.Cluster) {
	for _, o := range c.Objects() {
		if o.Resource.GroupResource() == leases.GroupResource() {
			_ = remove(c, leases, o.Namespace, o.Name) //nolint:errcheck // it may have gone
		}
	}
}

// cannotLead returns an error if the operator waits for a Lease that it can't create.
func (p *planner) cannotLead() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.homeless == "" {
		return nil
	}
	return fmt.Errorf("the operator cannot become the leader: its Lease is to be in the namespace %q, which does not exist; "+
		"add the namespace to the objects of --from or -f, or turn off leader election in the operator's arguments", p.homeless)
}
