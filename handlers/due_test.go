// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is due for all objects at the start takes no memory when it is done.
func TestDuesOfManyObjectsAreReleased(t *testing.T) {
	var d dues
	for i := range 1000 {
		d.mark(client.ObjectKey{Name: fmt.Sprint(i)}, reasonChange)
	}
	for i := range 1000 {
		d.take(client.ObjectKey{Name: fmt.Sprint(i)}, time.Now())
	}
	if d.all != nil {
		t.Errorf("a map with room for 1000 objects is kept, and has %d", len(d.all))
	}
	d.mark(client.ObjectKey{Name: "a"}, reasonChange)
	d.take(client.ObjectKey{Name: "a"}, time.Now())
	if d.all == nil {
		t.Error("a small map is made again for each event")
	}
}
