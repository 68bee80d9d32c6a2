// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// run runs a workflow and prints what a controller would return from Reconcile.
func run(workflow ctrlkit.Action) {
	result, err := ctrlkit.IgnoreExit(workflow.Run(context.Background()))
	fmt.Printf("%s: requeue after %s, error: %v\n", workflow.Description(), result.RequeueAfter, err)
}

func ExampleNop() {
	run(ctrlkit.Nop())
	// Output: Nop: requeue after 0s, error: <nil>
}

func ExampleJoin() {
	config := ctrlkit.NewAction("SyncConfig", func(context.Context) (ctrl.Result, error) {
		return ctrlkit.RequeueIfError(errors.New("quota exceeded"))
	})
	certificate := ctrlkit.NewAction("RenewCertificate", func(context.Context) (ctrl.Result, error) {
		return ctrlkit.RequeueAfter(time.Hour)
	})
	run(ctrlkit.Join(config, certificate)) // both run
	// Output:
	// Join(SyncConfig, RenewCertificate): requeue after 1h0m0s, error: SyncConfig: quota exceeded
}

func ExampleJoinOrdered() {
	run(ctrlkit.JoinOrdered(say("SyncConfig"), say("SyncPods")))
	// Output:
	// SyncConfig
	// SyncPods
	// JoinOrdered(SyncConfig, SyncPods): requeue after 0s, error: <nil>
}

func ExampleParallelJoin() {
	run(ctrlkit.ParallelJoin(say("SyncZone"), say("SyncZone"))) // each on a goroutine of its own
	// Output:
	// SyncZone
	// SyncZone
	// ParallelJoin(SyncZone, SyncZone): requeue after 0s, error: <nil>
}

func ExampleParallelJoinLimit() {
	run(ctrlkit.ParallelJoinLimit(1, say("SyncEast"), say("SyncWest"))) // one at a time
	// Output:
	// SyncEast
	// SyncWest
	// ParallelJoin(at most 1, SyncEast, SyncWest): requeue after 0s, error: <nil>
}

func ExampleSequential() {
	disk := ctrlkit.NewAction("SyncDisk", func(context.Context) (ctrl.Result, error) {
		return ctrl.Result{}, ctrlkit.Poll("the disk to be attached", 10*time.Second)
	})
	run(ctrlkit.Sequential(say("SyncConfig"), disk, say("SyncPods"))) // the wait interrupts
	// Output:
	// SyncConfig
	// Sequential(SyncConfig, SyncDisk, SyncPods): requeue after 10s, error: <nil>
}

func ExampleIf() {
	suspended := true
	run(ctrlkit.If(!suspended, say("RunNextJob")))
	// Output: If(false, RunNextJob): requeue after 0s, error: <nil>
}

func ExampleIfElse() {
	primary := false
	run(ctrlkit.IfElse(primary, say("AcceptWrites"), say("FollowPrimary")))
	// Output:
	// FollowPrimary
	// IfElse(false, AcceptWrites, FollowPrimary): requeue after 0s, error: <nil>
}

func ExampleIfFunc() {
	// The condition is evaluated when the run reaches it, here after the primary was elected.
	elected := false
	elect := ctrlkit.NewAction("Elect", func(context.Context) (ctrl.Result, error) {
		elected = true
		return ctrlkit.NoRequeue()
	})
	isElected := func(context.Context) (bool, error) { return elected, nil }
	run(ctrlkit.Sequential(elect, ctrlkit.IfFunc("elected", isElected, say("SyncReplicas"))))
	// Output:
	// SyncReplicas
	// Sequential(Elect, If(elected, SyncReplicas)): requeue after 0s, error: <nil>
}

func ExampleIfElseFunc() {
	isReady := func(context.Context) (bool, error) { return false, errors.New("reading pods: timeout") }
	run(ctrlkit.IfElseFunc("ready", isReady, say("Upgrade"), say("Repair")))
	// Output:
	// IfElse(ready, Upgrade, Repair): requeue after 0s, error: condition ready: reading pods: timeout
}

func ExampleTimeout() {
	backup := ctrlkit.NewAction("Backup", func(ctx context.Context) (ctrl.Result, error) {
		<-ctx.Done() // an API that does not answer
		return ctrlkit.RequeueIfError(ctx.Err())
	})
	run(ctrlkit.Timeout(10*time.Millisecond, backup))
	// Output:
	// Timeout(10ms, Backup): requeue after 0s, error: Backup: timed out after 10ms: context deadline exceeded
}

func ExampleRetry() {
	attempts := 0
	register := ctrlkit.NewAction("Register", func(context.Context) (ctrl.Result, error) {
		if attempts++; attempts < 3 {
			return ctrlkit.RequeueIfError(errors.New("conflict"))
		}
		return ctrlkit.NoRequeue()
	})
	run(ctrlkit.Retry(wait.Backoff{Steps: 3, Duration: time.Millisecond}, register))
	// Output: Retry(3 times, Register): requeue after 0s, error: <nil>
}

func ExampleOnce() {
	endpoint := ctrlkit.Once(say("LookUpEndpoint"))
	run(ctrlkit.JoinOrdered(
		ctrlkit.Sequential(endpoint, say("SyncConfig")),
		ctrlkit.Sequential(endpoint, say("SyncSecret")),
	))
	// Output:
	// LookUpEndpoint
	// SyncConfig
	// SyncSecret
	// JoinOrdered(Sequential(Once(LookUpEndpoint), SyncConfig), Sequential(Once(LookUpEndpoint), SyncSecret)): requeue after 0s, error: <nil>
}

func ExampleFinally() {
	pods := ctrlkit.NewAction("SyncPods", func(context.Context) (ctrl.Result, error) {
		panic("index out of range")
	})
	workflow := ctrlkit.Finally(pods, say("UpdateStatus"))
	_, err := workflow.Run(context.Background())
	fmt.Println("error:", err)
	// Output:
	// UpdateStatus
	// error: SyncPods: panic: index out of range
}
