// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram_test

import (
	"context"
	"errors"
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/diagram"
)

func action(name string, outcome func() (ctrl.Result, error)) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return outcome() })
}

func cronJobWorkflow() ctrlkit.Action {
	notSuspended := func(context.Context) (bool, error) { return true, nil }
	return ctrlkit.Finally(
		ctrlkit.Join(
			action("ListActiveJobsAndUpdateStatus", ctrlkit.NoRequeue),
			action("CleanUpOldJobsExceedsHistoryLimits", ctrlkit.NoRequeue),
			ctrlkit.IfFunc("not suspended", notSuspended, action("RunNextScheduledJob", func() (ctrl.Result, error) {
				return ctrlkit.RequeueAfter(time.Minute)
			})),
		),
		action("UpdateCronJobStatus", ctrlkit.NoRequeue),
	)
}

func ExampleText() {
	_ = diagram.Text(os.Stdout, ctrlkit.Describe(cronJobWorkflow()))
	// Output:
	// Finally
	// ├── Join
	// │   ├── ListActiveJobsAndUpdateStatus
	// │   ├── CleanUpOldJobsExceedsHistoryLimits
	// │   └── If not suspended
	// │       └── RunNextScheduledJob
	// └── always: UpdateCronJobStatus
}

func ExampleRecorder() {
	workflow := ctrlkit.Sequential(
		action("CreateService", ctrlkit.NoRequeue),
		ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			volume := g.Add(action("CreateVolume", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("volume data-0 to be bound") }))
			secret := g.Add(action("CreateSecret", func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(errors.New("quota exceeded")) }))
			g.Add(action("CreatePod", ctrlkit.NoRequeue), volume, secret)
		}),
		action("UpdateStatus", ctrlkit.NoRequeue),
	)

	var recorder diagram.Recorder
	_, _ = workflow.Run(ctrlkit.ContextWithHook(context.Background(), &recorder))
	_ = diagram.Text(os.Stdout, ctrlkit.Describe(workflow), diagram.WithOutcomes(&recorder))
	// Output:
	// Sequential
	// ├── ✓ CreateService
	// ├── Graph
	// │   ├── … CreateVolume  waits for volume data-0 to be bound
	// │   ├── ✗ CreateSecret  failed: quota exceeded
	// │   └── after CreateVolume and CreateSecret: ⊘ CreatePod  blocked by CreateVolume, CreateSecret
	// └── ○ UpdateStatus  not run
}

func ExampleMermaid() {
	_ = diagram.Mermaid(os.Stdout, ctrlkit.Describe(ctrlkit.Sequential(action("SyncService", ctrlkit.NoRequeue), action("SyncPods", ctrlkit.NoRequeue))))
	// Output:
	// flowchart TB
	//   n1((" ")):::dot
	//   n2("SyncService"):::plain
	//   n3("SyncPods"):::plain
	//   n4(((" "))):::dot
	//   n1 --> n2
	//   n2 --> n3
	//   n3 --> n4
	//   classDef dot fill:#768390,stroke:#768390,color:#768390
	//   classDef plain fill:#ffffff,stroke:#57606a,color:#1f2328
}
