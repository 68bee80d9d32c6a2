// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// processAnnotation has the process that holds a Lease. The protocol wants the holder to have the
// name of the Lease, so that two processes with one name would both believe to hold it.
const processAnnotation = "sharding.ctrlkit.dev/process"

// A lease is the Lease of a shard, as leader election holds it.
type lease struct {
	client  coordinationclient.LeaseInterface
	shard   *Shard
	process string
	log     logr.Logger

	warned bool
	last   *coordinationv1.Lease
}

var _ resourcelock.Interface = (*lease)(nil)

// Get implements [resourcelock.Interface]. A Lease that another process of our name has is held by
// another one.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	got, err := l.client.Get(ctx, l.shard.name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	l.last = got
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&got.Spec)
	if other := got.Annotations[processAnnotation]; record.HolderIdentity == l.shard.name && other != l.process {
		record.HolderIdentity += " (process " + other + ")"
		if !l.warned {
			l.warned = true
			l.log.Info("Another process has the name of this shard, or had it until a moment ago: it has to have ended, or each has to have its own name, before this one can begin",
				"shard", l.shard.name, "ring", l.shard.ring)
		}
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

// Create implements [resourcelock.Interface].
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	want := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.shard.name}}
	return l.write(want, record, func(want *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return l.client.Create(ctx, want, metav1.CreateOptions{})
	})
}

// Update implements [resourcelock.Interface].
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.last == nil {
		return errors.New("the Lease of the shard was not read yet")
	}
	return l.write(l.last.DeepCopy(), record, func(want *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return l.client.Update(ctx, want, metav1.UpdateOptions{})
	})
}

// write writes a Lease with our labels. Those of the sharder stay.
func (l *lease) write(want *coordinationv1.Lease, record resourcelock.LeaderElectionRecord, send func(*coordinationv1.Lease) (*coordinationv1.Lease, error)) error {
	want.Labels, want.Annotations = maps.Clone(want.Labels), maps.Clone(want.Annotations)
	metav1.SetMetaDataLabel(&want.ObjectMeta, ringLabel, l.shard.ring)
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, processAnnotation, l.process)
	want.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	got, err := send(want)
	if err != nil {
		return err
	}
	l.last = got
	return nil
}

// RecordEvent implements [resourcelock.Interface]. There are no events: the sharder's labels show
// what becomes of shards.
func (l *lease) RecordEvent(string) {}

// Identity implements [resourcelock.Interface].
func (l *lease) Identity() string { return l.shard.name }

// Describe implements [resourcelock.Interface].
func (l *lease) Describe() string { return l.shard.String() }
