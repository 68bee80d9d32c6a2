// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/failure"
)

// install applies the manifests of a directory until all objects are ready.
func install(ctx context.Context, a *apply.Applier, name client.ObjectKey, dir string, out io.Writer) error {
	want, err := read(dir)
	if err != nil {
		return err
	}
	said := ""
	return again(ctx, func() (bool, error) {
		status, err := a.Apply(ctx, name, want)
		if err != nil {
			if f := failure.Classify(err); f.Class == failure.ClassTerminal {
				return false, fmt.Errorf("%w: %s", err, f.Remedy)
			}
			fmt.Fprintln(out, "trying again:", err)
			return false, nil
		}
		for _, ref := range status.Pruned {
			fmt.Fprintln(out, "deleted", ref)
		}
		if status.Lacks != said {
			said = status.Lacks
			fmt.Fprintln(out, said)
		}
		return status.Lacks == "", nil
	})
}

// uninstall deletes what was installed under a name.
func uninstall(ctx context.Context, a *apply.Applier, name client.ObjectKey, out io.Writer) error {
	return again(ctx, func() (bool, error) {
		waits, err := a.Delete(ctx, name)
		if waits != "" {
			fmt.Fprintln(out, "waits for", waits)
		}
		return waits == "", err
	})
}

// again calls do each second until it is done, fails, or the context ends.
func again(ctx context.Context, do func() (done bool, err error)) error {
	for {
		if done, err := do(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}
