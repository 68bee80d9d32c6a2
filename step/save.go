// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// A saver saves what the steps have changed: at the end of a reconcile, and when a step asks for
// it.
type saver[T client.Object] struct {
	mu     sync.Mutex // while the object is saved
	writer writer[T]
	stale  bool // the object is older than one that was read from the API server
}

// An unsavedReporter adds what could not be saved to the outcome of a reconcile.
type unsavedReporter interface {
	// unsaved joins errors to an outcome, and classifies the result.
	unsaved(ctx context.Context, out outcome, errs ...error) outcome
	// resummarize computes the conditions again. It is called before the status is written.
	resummarize(out outcome) outcome
}

// requeueGone is when to reconcile an object again that the API server did not find.
const requeueGone = 5 * time.Second

// save writes what the steps have changed since the object was read, or saved last: the metadata,
// then the status, each if it has changed. See [writer.write] for what happens when the object has
// changed meanwhile.
func (s *saver[T]) save(ctx context.Context, out outcome, report unsavedReporter) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stale {
		// Results of a stale version are not saved: the next reconcile has a newer one. It also
		// runs if a step has ignored the wait.
		return out.join(outcome{after: requeueStale})
	}
	changed, err := s.changes()
	if err != nil {
		return report.unsaved(ctx, out, err)
	}
	if len(changed) == 0 {
		return out
	}
	var errs []error
	if err := refuse(changed); err != nil {
		errs = append(errs, err)
	}
	ctx, cancel := granted(ctx)
	defer cancel()
	w := &s.writer
	if metadata, _ := changed["metadata"].(map[string]any); len(metadata) > 0 {
		err := w.write(ctx, partMetadata, w.req.Object, metadata)
		switch {
		case apierrors.IsNotFound(err) && !w.read.GetDeletionTimestamp().IsZero():
			// It is gone already, most likely. A wrong answer looks the same, and only another
			// reconcile can show the difference.
			return out.join(outcome{after: requeueGone})
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err): // the status would fare the same
			return report.unsaved(ctx, out, append(errs, w.writeFailed(ctx, partMetadata, err))...)
		case err != nil:
			errs = append(errs, w.writeFailed(ctx, partMetadata, err))
		}
	}
	if len(errs) > 0 {
		out = report.resummarize(report.unsaved(ctx, out, errs...))
		if again, err := s.changes(); err == nil {
			changed = again
		}
	}
	w.quiet = out.err != nil || w.memory.failed && len(out.waits) > 0 && out.after > 0
	if status, ok := changed["status"]; ok {
		err := w.write(ctx, partStatus, w.req.Object, status)
		if err != nil && !(apierrors.IsNotFound(err) && w.memory.protection.isCleaned()) {
			out = report.unsaved(ctx, out, w.writeFailed(ctx, partStatus, err))
			if w.quiet = true; failure.IsTooLarge(err) || apierrors.IsInvalid(err) {
				if out = report.resummarize(out); w.writeWithout(ctx, w.req.Object, refusedStatus(err)) == nil {
					return out
				}
			}
			w.conditions.announceUnsaved(out)
			return out
		}
	}
	return out
}

// saveNow is [Request.Save].
func (s *saver[T]) saveNow(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, err := s.changes()
	if err != nil || len(changed) == 0 {
		return err
	}
	var errs []error
	if err := refuse(changed); err != nil {
		errs = append(errs, err)
	}
	for _, part := range []savedPart{partMetadata, partStatus} {
		content, ok := changed[string(part)]
		if m, isMap := content.(map[string]any); !ok || isMap && len(m) == 0 {
			continue
		}
		if err := s.writer.write(ctx, part, s.writer.req.Object, content); err != nil {
			errs = append(errs, s.writer.writeFailed(ctx, part, err))
			break
		}
	}
	return errors.Join(errs...)
}

// awaitNewest returns a wait, and prevents that anything is saved that follows from a stale
// version. The caller has the lock.
func (s *saver[T]) awaitNewest() error {
	s.stale = true
	return ctrlkit.Poll("the newest version of the object to arrive in the cache", requeueStale)
}

// keepStatus reverts changes of the status: the object is removed, and no client would read it.
func (s *saver[T]) keepStatus() { copyStatus(s.writer.req.Object, s.writer.base()) }

// changes returns what differs from the base, as a merge patch; nil if nothing does.
func (s *saver[T]) changes() (map[string]any, error) {
	base, obj := s.writer.base(), s.writer.req.Object
	// The cheaper comparison comes first: mostly nothing has changed, not even what the other one
	// ignores.
	if reflect.DeepEqual(base, obj) || equality.Semantic.DeepEqual(base, obj) {
		return nil, nil
	}
	changed, err := mergePatch(base, obj)
	if err != nil {
		return nil, fmt.Errorf("comparing the object with what was read: %w", err)
	}
	return changed, nil
}

// ErrReadOnlyField says that a step has changed a part of the object that the engine does not
// write.
var ErrReadOnlyField = errors.New("a step has changed a field that the engine does not write")

// writable are the keys of the metadata that steps may change.
var writable = []string{"labels", "annotations", "finalizers", "ownerReferences"}

// refuse removes what is not the operator's to write, and returns an error that names it.
func refuse(changed map[string]any) error {
	var refused []string
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		if key != "metadata" && key != "status" {
			refused = append(refused, track.Fields(map[string]any{key: changed[key]})...)
			delete(changed, key)
		}
	}
	if metadata, ok := changed["metadata"].(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			if !slices.Contains(writable, key) {
				refused = append(refused, ".metadata."+key)
				delete(metadata, key)
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	if slices.Contains(refused, ".metadata.resourceVersion") || slices.Contains(refused, ".metadata.managedFields") {
		return failure.Terminal(fmt.Errorf("%w: %s: Request.Object was read or written by another client than Request.Client", ErrReadOnlyField, strings.Join(refused, ", ")), "", "a step reads and writes through Request.Client: have it use that client, or an object of its own")
	}
	return failure.Mark(fmt.Errorf("%w: %s: change labels, annotations, finalizers, owner references or the status of the object, and nothing else",
		ErrReadOnlyField, strings.Join(refused, ", ")), failure.WithClass(failure.ClassTerminal))
}

// refusePatch returns the error of a patch of Request.Object that changes other fields.
func refusePatch(fields []string) error {
	err := fmt.Errorf("%w: %v of Request.Object is patched: patch a copy of the object if its user allows that", ErrReadOnlyField, fields)
	return failure.Mark(err, failure.WithClass(failure.ClassTerminal))
}

// granted returns ctx while it is not done, and afterwards a context that has its values and some
// more time.
func granted(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), ctrlkit.FinallyGrace)
}

func mustJSON(v any) []byte {
	data, _ := json.Marshal(v) //nolint:errchkjson // it comes out of JSON
	return data
}
