// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package tenure

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// NewManager returns a manager that holds a Lease by the lock, in the time of which alone it acts. The
// contexts of all that it runs know the tenure.
func (t *Tenure) NewManager(config *rest.Config, options ctrl.Options, by resourcelock.Interface) (ctrl.Manager, error) {
	options.LeaderElectionResourceLockInterface = &lock{Interface: by, tenure: t}
	base := options.BaseContext
	if base == nil {
		base = context.Background
	}
	options.BaseContext = func() context.Context { return t.Context(base()) }
	config = rest.CopyConfig(config)
	config.Wrap(t.fenced)
	return ctrl.NewManager(config, options)
}

// Context returns a context that knows the tenure.
func (t *Tenure) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, bound{Tenure: t})
}

// A lock is the lock of leader election, from which the tenure knows what becomes of its Lease.
type lock struct {
	resourcelock.Interface
	tenure *Tenure
}

// Create implements [resourcelock.Interface].
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements [resourcelock.Interface].
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write writes the Lease. When leader election gives it back, the tenure ends before that.
func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if record.HolderIdentity != l.Identity() {
		l.tenure.Release()
		return send(ctx, record)
	}
	sent := time.Now()
	if err := send(ctx, record); err != nil {
		return err
	}
	l.tenure.Renew(sent, time.Duration(record.LeaseDurationSeconds)*time.Second)
	return nil
}
