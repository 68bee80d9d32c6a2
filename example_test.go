// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// say returns an action that prints its name.
func say(name string) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) {
		fmt.Println(name)
		return ctrlkit.NoRequeue()
	})
}

func Example() {
	suspended := false
	cleanUp := ctrlkit.NewAction("CleanUpOldJobs", func(context.Context) (ctrl.Result, error) {
		return ctrlkit.RequeueIfError(errors.New("deleting job: forbidden"))
	})
	runNext := ctrlkit.NewAction("RunNextScheduledJob", func(context.Context) (ctrl.Result, error) {
		return ctrlkit.RequeueAfter(42 * time.Second)
	})

	workflow := ctrlkit.Finally(
		ctrlkit.Join(
			cleanUp,
			ctrlkit.If(!suspended, runNext),
		),
		say("UpdateStatus"),
	)
	fmt.Println(workflow.Description())
	result, err := ctrlkit.IgnoreExit(workflow.Run(context.Background()))
	fmt.Println(result.RequeueAfter, err)
	// Output:
	// Finally(Join(CleanUpOldJobs, If(true, RunNextScheduledJob)), UpdateStatus)
	// UpdateStatus
	// 42s CleanUpOldJobs: deleting job: forbidden
}

func ExampleGraph() {
	disk := ctrlkit.NewAction("SyncDisk", func(context.Context) (ctrl.Result, error) {
		return ctrl.Result{}, ctrlkit.Wait("PersistentVolumeClaim default/data to be bound")
	})
	workflow := ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
		config := g.Add(say("SyncConfig"))
		disk := g.Add(disk)
		pods := g.Add(say("SyncPods"), config, disk)
		g.Add(say("SyncMonitor"), pods)
	})
	_, err := workflow.Run(context.Background())
	for _, wait := range ctrlkit.Waits(err) {
		fmt.Println(wait.Action, "waits for", wait.For)
	}
	for _, blocked := range ctrlkit.BlockedActions(err) {
		fmt.Println(blocked)
	}
	_, err = ctrlkit.IgnoreExit(ctrl.Result{}, err)
	fmt.Println("error:", err)
	// Output:
	// SyncConfig
	// SyncDisk waits for PersistentVolumeClaim default/data to be bound
	// SyncPods is blocked by SyncDisk
	// SyncMonitor is blocked by SyncDisk
	// error: <nil>
}

func ExampleRequeueWithin() {
	quota := ctrlkit.NewAction("RefreshQuota", func(context.Context) (ctrl.Result, error) {
		return ctrl.Result{}, ctrlkit.RequeueWithin(time.Minute) // the sequence continues
	})
	result, err := ctrlkit.IgnoreExit(ctrlkit.Sequential(quota, say("SyncPods")).Run(context.Background()))
	fmt.Println(result.RequeueAfter, err)
	// Output:
	// SyncPods
	// 1m0s <nil>
}
