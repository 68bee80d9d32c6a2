// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "fmt"

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
