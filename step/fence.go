// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A fence keeps a reconcile from acting on an object that the cache shows as it was before the
// process started. It is for engines with Options.APIReader.
type fence[T client.Object] struct {
	resource  *resource[T]
	key       client.ObjectKey
	read      T
	journal   *journal.Run
	freshness *freshness
	saver     *saver[T]
}

// ensure returns a wait if the object that the reconcile has read may be older than the process. It
// reads the newest version once for each object and process: as soon as the cache has that version,
// or a later one, its watch is up to date.
func (f *fence[T]) ensure(ctx context.Context) error {
	if f.freshness.isSet() { // the finalizer was written meanwhile
		return nil
	}
	if f.freshness.newestSeen() == "" {
		obj, err := f.resource.metadata(ctx, f.key, f.journal)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("asking whether the cache is up to date: %w", err)
		case err == nil && obj.UID == f.read.GetUID():
			f.freshness.sawLive(obj.ResourceVersion)
		}
	}
	f.saver.mu.Lock()
	defer f.saver.mu.Unlock()
	version := f.read.GetResourceVersion()
	if !f.saver.writer.rebased {
		version = f.saver.writer.base().GetResourceVersion() // our own writes have followed one another
	}
	if live := f.freshness.newestSeen(); live != "" && !older(version, live) {
		f.freshness.set()
		return nil
	}
	return f.saver.awaitNewest()
}
