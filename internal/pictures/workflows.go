// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/diagram"
)

type outcome func() (ctrl.Result, error)

// cronJob is the workflow of the CronJob operator in examples/01_cronjob, whose next run ends with
// runNext.
func cronJob(runNext outcome) ctrlkit.Action {
	notSuspended := func(context.Context) (bool, error) { return true, nil }
	return ctrlkit.Finally(
		ctrlkit.Join(
			action("CleanUpOldJobsExceedsHistoryLimits", ctrlkit.NoRequeue),
			ctrlkit.Sequential(
				action("ListActiveJobsAndUpdateStatus", ctrlkit.NoRequeue),
				ctrlkit.IfFunc("not suspended?", notSuspended, action("RunNextScheduledJob", runNext)),
			),
		),
		action("UpdateCronJobStatus", ctrlkit.NoRequeue),
	)
}

// database is a workflow with dependencies, one of which waits and one of which fails.
func database() ctrlkit.Action {
	return ctrlkit.Finally(
		ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			volume := g.Add(action("SyncVolume", func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("volume claim data-0 to be bound") }))
			config := g.Add(action("SyncConfig", ctrlkit.NoRequeue))
			secret := g.Add(action("SyncSecret", func() (ctrl.Result, error) {
				return ctrlkit.RequeueIfError(errors.New("creating Secret db: exceeded quota"))
			}))
			pods := g.Add(ctrlkit.Timeout(5*time.Second, action("SyncPods", ctrlkit.NoRequeue)), volume, config)
			g.Add(action("SyncService", ctrlkit.NoRequeue), pods, secret)
			g.Add(action("SyncMonitor", func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(30 * time.Second) }), config)
		}),
		action("UpdateStatus", ctrlkit.NoRequeue),
	)
}

func action(name string, o outcome) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return o() })
}

func drawWorkflows(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	untilNext := func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(time.Minute) }
	pictures := []struct {
		name, title string
		workflow    ctrlkit.Action
		run         bool
	}{
		{"cronjob-workflow", "The workflow of the CronJob operator", cronJob(untilNext), false},
		{"cronjob-outcomes", "A run of the CronJob operator's workflow: the next Job is due in one minute", cronJob(untilNext), true},
		{"graph-outcomes", "A run of a workflow with dependencies, of which one waits and one has failed", database(), true},
	}
	for _, p := range pictures {
		options := []diagram.Option{diagram.WithTitle(p.title)}
		if p.run {
			var recorder diagram.Recorder
			_, _ = p.workflow.Run(ctrlkit.ContextWithHook(ctx, &recorder)) // what it returns is in the picture
			options = append(options, diagram.WithOutcomes(&recorder))
		}
		err := writeFile(filepath.Join(dir, p.name+".svg"), func(w io.Writer) error {
			return diagram.SVG(w, ctrlkit.Describe(p.workflow), options...)
		})
		if err != nil {
			return fmt.Errorf("drawing %s: %w", p.name, err)
		}
	}
	return nil
}
