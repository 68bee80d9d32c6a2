// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/failure"
)

// DNS is the service outside of the cluster that holds the records. The owner of a record is the
// namespace and name of a Website. Both methods may be called again after a crash, and concurrently
// for different hosts.
type DNS interface {
	// Ensure points host to target. The error is ErrHostTaken if the record of host belongs to
	// another owner.
	Ensure(ctx context.Context, host, target string, owner *v1.Website) error
	// Remove removes the record of host. It does nothing if there is none, or if it belongs to
	// another owner.
	Remove(ctx context.Context, host string, owner *v1.Website) error
}

// ErrHostTaken means that the record of a host belongs to another owner. A retry does not help, so
// that the error is terminal.
var ErrHostTaken = failure.Terminal(errors.New("the DNS record of the host belongs to another owner: remove it there, or create a Website with another host"), "HostTaken", "")

// memoryDNS is a DNS service in memory, which ends with the process.
type memoryDNS struct {
	mu      sync.Mutex
	records map[string]record // by host, guarded by mu
}

type record struct {
	target string
	owner  types.NamespacedName
}

var _ DNS = (*memoryDNS)(nil)

func newMemoryDNS() *memoryDNS { return &memoryDNS{records: make(map[string]record)} }

func (d *memoryDNS) Ensure(_ context.Context, host, target string, owner *v1.Website) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	wanted := record{target, client.ObjectKeyFromObject(owner)}
	if now, ok := d.records[host]; ok && now.owner != wanted.owner {
		return ErrHostTaken
	}
	d.records[host] = wanted
	return nil
}

func (d *memoryDNS) Remove(_ context.Context, host string, owner *v1.Website) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.records[host].owner == client.ObjectKeyFromObject(owner) {
		delete(d.records, host)
	}
	return nil
}

// target returns the target of a host, or "" if it has no record.
func (d *memoryDNS) target(host string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.records[host].target
}
