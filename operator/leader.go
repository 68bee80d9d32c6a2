// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
)

// ErrExpired is the error of what was not done, or was canceled, because the process does not hold
// its Lease any more, as a leader or as a shard: another process may do it by now. It is one of
// context.Canceled, too.
var ErrExpired = tenure.ErrExpired

// NewManager returns a manager, like ctrl.NewManager, that as a leader does nothing without its
// Lease.
//
// With leader election of controller-runtime, a leader that was stopped for longer than its Lease
// (a frozen virtual machine, a paused container, SIGSTOP) works on beside its successor when it is
// resumed, until the deadline of its renewals ends it: for ten seconds by default. Two leaders
// write then, and call external systems. This manager knows until when it holds its Lease, by its
// own clock. After that
//
//   - no request that writes is sent to the API server,
//   - no action of a workflow, no step and no handler begins, and no call of package external,
//   - the contexts of those that run are done.
//
// Each of them ends with [ErrExpired]. If the Lease is renewed after all, because no one has taken
// it, the work continues. Otherwise leader election ends the manager, as before.
//
// A message that was sent before the Lease has expired may arrive later: a request, or a call, that
// is under way when the process is stopped. No clock of a process prevents that.
//
// The clock continues while a process is stopped, and while a machine is suspended. A virtual
// machine that is frozen together with its clocks, and thawed with the time of before, learns of it
// when its clock is set: let the clock be set when it is resumed, as guest agents do, or end the
// process.
//
// The clients of the manager are those that are fenced: one that is made from config, and not from
// Manager.GetConfig, writes on. The replicas that wait, caches, webhooks and other runnables that
// need no leader election write as ever, until the process has been the leader. Without leader
// election the manager is an ordinary one.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	if !options.LeaderElection {
		return ctrl.NewManager(config, options)
	}
	lock, err := lockOf(config, options)
	if err != nil {
		return nil, fmt.Errorf("making the lock of leader election: %w", err)
	}
	mgr, err := new(tenure.Tenure).NewManager(config, options, lock)
	if err != nil {
		return nil, err
	}
	if lease, ok := lock.(*resourcelock.LeaseLock); ok && lease.LockConfig.EventRecorder == nil {
		//lint:ignore SA1019 the lock of client-go takes a recorder of the old API only
		lease.LockConfig.EventRecorder = mgr.GetEventRecorderFor(lease.LockConfig.Identity)
	}
	return mgr, nil
}

// lockOf returns the lock that the manager would make.
func lockOf(config *rest.Config, options ctrl.Options) (resourcelock.Interface, error) {
	if given := options.LeaderElectionResourceLockInterface; given != nil {
		return given, nil
	}
	if options.LeaderElectionConfig != nil {
		config = options.LeaderElectionConfig
	}
	of := leaderelection.Options{
		LeaderElection: true, LeaderElectionResourceLock: options.LeaderElectionResourceLock,
		LeaderElectionNamespace: options.LeaderElectionNamespace, LeaderElectionID: options.LeaderElectionID,
		RenewDeadline: defaultRenewDeadline, LeaderLabels: options.LeaderElectionLabels,
	}
	if options.RenewDeadline != nil {
		of.RenewDeadline = *options.RenewDeadline
	}
	return leaderelection.NewResourceLock(rest.CopyConfig(config), unknown{}, of)
}

// defaultRenewDeadline is that of the manager.
const defaultRenewDeadline = 10 * time.Second

// unknown is the recorder of a manager that does not exist yet.
type unknown struct{ recorder.Provider }

func (unknown) GetEventRecorderFor(string) record.EventRecorder { return nil }
