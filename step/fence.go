// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A fence keeps a reconcile from acting on an object that the cache shows as it was before the
// process started. It is for engines with Options.APIReader.
type fence[T client.Object] struct{ saver *saver[T] }

// ensure returns a wait if the object that the reconcile has read may be older than the process. It
// reads the newest version once for each object and process: as soon as the cache has that version,
// or a later one, its watch is up to date. An object whose version is of the [epoch] is not read.
func (f *fence[T]) ensure(ctx context.Context) error {
	w := &f.saver.writer
	fresh := &w.memory.freshness
	done, err := fresh.ask(ctx)
	if err != nil {
		return err
	}
	defer done()
	if fresh.isSet() { // the finalizer was written meanwhile, or an action at the same time has asked
		return nil
	}
	if fresh.newestSeen() == "" {
		if w.resource.epoch.includes(w.read.GetResourceVersion()) {
			fresh.set()
			return nil
		}
		obj, err := w.resource.metadata(ctx, w.key(), w.record.Journal)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("asking whether the cache is up to date: %w", err)
		case err == nil && obj.UID == w.read.GetUID():
			fresh.sawLive(obj.ResourceVersion)
		}
	}
	f.saver.mu.Lock()
	defer f.saver.mu.Unlock()
	version := w.read.GetResourceVersion()
	if !w.rebased {
		version = w.base().GetResourceVersion() // our own writes have followed one another
	}
	if live := fresh.newestSeen(); live != "" && !older(version, live) {
		fresh.set()
		return nil
	}
	return f.saver.awaitNewest()
}
