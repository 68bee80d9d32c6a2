// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
)

// follow keeps a cluster as a directory says, such as one that git-sync keeps up to date: each of its
// folders is a set, which has the name of the folder. It returns when the context ends.
func follow(ctx context.Context, a *apply.Applier, namespace, dir string, every time.Duration, out io.Writer) error {
	for {
		if err := syncOnce(ctx, a, namespace, dir, out); err != nil {
			fmt.Fprintln(out, "trying again:", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// syncOnce applies each folder. A failure in one leaves the others alone. What was in a folder that
// is gone stays: uninstall deletes it.
func syncOnce(ctx context.Context, a *apply.Applier, namespace, dir string, out io.Writer) error {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		name := client.ObjectKey{Namespace: namespace, Name: folder.Name()}
		want, err := read(filepath.Join(dir, folder.Name()))
		if err != nil {
			fmt.Fprintf(out, "%s: %v\n", name.Name, err)
			continue
		}
		status, err := a.Apply(ctx, name, want)
		switch {
		case err != nil:
			fmt.Fprintf(out, "%s: %v\n", name.Name, err)
		case status.Lacks != "":
			fmt.Fprintf(out, "%s: %s\n", name.Name, status.Lacks)
		}
	}
	return nil
}
