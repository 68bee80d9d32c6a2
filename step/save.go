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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
)

// saved is what a reconcile has written to its own object.
type saved struct{ metadata, status bool }

func (s saved) any() bool { return s.metadata || s.status }

// save writes what the steps have changed since the object was read, or saved last: the metadata,
// then the status, each if it has changed. See [run.write] for what happens when the object has
// changed meanwhile.
func (r *run[T]) save(ctx context.Context, out outcome) outcome {
	r.saving.Lock()
	defer r.saving.Unlock()
	if r.stale {
		// What follows from an old version is not saved: the next reconcile has a newer one. It
		// comes also if a step has ignored the wait.
		return out.join(outcome{after: lookAgainBehind})
	}
	changed, err := r.changes()
	if err != nil {
		return r.failedSaving(ctx, out, err)
	}
	if len(changed) == 0 {
		return out
	}
	var errs []error
	if err := r.refuse(changed); err != nil {
		errs = append(errs, err)
	}
	ctx, cancel := granted(ctx)
	defer cancel()
	if metadata, _ := changed["metadata"].(map[string]any); len(metadata) > 0 {
		err := r.write(ctx, partMetadata, r.req.Object, metadata)
		switch {
		case apierrors.IsNotFound(err) && !r.read.GetDeletionTimestamp().IsZero():
			// It is gone already, most likely. A wrong answer looks the same, and only looking
			// again tells them apart.
			return out.join(outcome{after: lookAgainGone})
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err): // the status would fare the same
			return r.failedSaving(ctx, out, append(errs, r.writeFailed(ctx, partMetadata, err))...)
		case err != nil:
			errs = append(errs, r.writeFailed(ctx, partMetadata, err))
		}
	}
	if len(errs) > 0 {
		out = r.failedSaving(ctx, out, errs...)
		changed = r.retold(ctx, &out, changed)
	}
	if status, ok := changed["status"]; ok {
		err := r.write(ctx, partStatus, r.req.Object, status)
		if err != nil && !(apierrors.IsNotFound(err) && r.memory.isCleaned()) {
			return r.failedSaving(ctx, out, r.writeFailed(ctx, partStatus, err))
		}
	}
	return out
}

// checkpoint is [Request.Save].
func (r *run[T]) checkpoint(ctx context.Context) error {
	r.saving.Lock()
	defer r.saving.Unlock()
	changed, err := r.changes()
	if err != nil || len(changed) == 0 {
		return err
	}
	var errs []error
	if err := r.refuse(changed); err != nil {
		errs = append(errs, err)
	}
	for _, part := range []savedPart{partMetadata, partStatus} {
		content, ok := changed[string(part)]
		if m, isMap := content.(map[string]any); !ok || isMap && len(m) == 0 {
			continue
		}
		if err := r.write(ctx, part, r.req.Object, content); err != nil {
			errs = append(errs, r.writeFailed(ctx, part, err))
			break
		}
	}
	return errors.Join(errs...)
}

// retold returns what has changed when the conditions also tell what could not be saved.
func (r *run[T]) retold(ctx context.Context, out *outcome, changed map[string]any) map[string]any {
	deletion := ""
	if !r.read.GetDeletionTimestamp().IsZero() {
		deletion = ReasonCleaningUp
	}
	r.summarize(ctx, out, deletion)
	if again, err := r.changes(); err == nil {
		return again
	}
	return changed
}

// lookAgainGone is when to look whether an object that is said to be gone is gone.
const lookAgainGone = 5 * time.Second

func (r *run[T]) failedSaving(ctx context.Context, out outcome, errs ...error) outcome {
	judged := out.err != nil
	for _, err := range errs {
		out = out.join(outcome{err: err})
	}
	if !judged {
		r.judge(ctx, &out)
	}
	return out
}

// base is what the object is compared with: as the cache had it, or as it was saved last.
func (r *run[T]) base() T { return r.req.snapshot }

// keepStatus undoes changes of the status: the object goes, and nobody would read it.
func (r *run[T]) keepStatus() { copyStatus(r.req.Object, r.base()) }

// copyStatus gives to the status of from. It is not copied deeply.
func copyStatus(to, from client.Object) {
	if v := reflect.ValueOf(to).Elem().FieldByName("Status"); v.IsValid() {
		v.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
	}
}

// hasStatus reports whether obj has a status that is not empty, or none that can be looked at.
func hasStatus(obj client.Object) bool {
	v := reflect.ValueOf(obj).Elem().FieldByName("Status")
	return !v.IsValid() || !v.IsZero()
}

// changes returns what differs from the base, as a merge patch; nil if nothing does.
func (r *run[T]) changes() (map[string]any, error) {
	// The cheaper comparison first: mostly nothing has changed, not even what the other one
	// overlooks.
	if reflect.DeepEqual(r.base(), r.req.Object) || equality.Semantic.DeepEqual(r.base(), r.req.Object) {
		return nil, nil
	}
	data, err := client.MergeFrom(r.base()).Data(r.req.Object)
	if err != nil {
		return nil, fmt.Errorf("comparing the object with what was read: %w", err)
	}
	changed := make(map[string]any)
	if err := utiljson.Unmarshal(data, &changed); err != nil { // it keeps large integers exact
		return nil, fmt.Errorf("comparing the object with what was read: %w", err)
	}
	return changed, nil
}

// ErrReadOnlyField says that a step has changed a part of the object that the engine does not write.
var ErrReadOnlyField = errors.New("a step has changed what is not the operator's")

// ours are the keys of the metadata that steps may change.
var ours = []string{"labels", "annotations", "finalizers", "ownerReferences"}

// refuse takes out what is not the operator's to write, and says what that was.
func (r *run[T]) refuse(changed map[string]any) error {
	var refused []string
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		if key != "metadata" && key != "status" {
			refused = append(refused, fieldsOf(mustJSON(map[string]any{key: changed[key]}))...)
			delete(changed, key)
		}
	}
	if metadata, ok := changed["metadata"].(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			if !slices.Contains(ours, key) {
				refused = append(refused, ".metadata."+key)
				delete(metadata, key)
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	if slices.Contains(refused, ".metadata.resourceVersion") || slices.Contains(refused, ".metadata.managedFields") {
		return failure.Mark(fmt.Errorf("%w: %s: Request.Object was read or written by another client than Request.Client", ErrReadOnlyField, strings.Join(refused, ", ")),
			failure.WithClass(failure.ClassTerminal), failure.WithRemedy("a step reads and writes through Request.Client: have it use that client, or an object of its own"))
	}
	return failure.Mark(fmt.Errorf("%w: %s: change labels, annotations, finalizers, owner references or the status of the object, and nothing else",
		ErrReadOnlyField, strings.Join(refused, ", ")), failure.WithClass(failure.ClassTerminal))
}

func mustJSON(v any) []byte {
	data, _ := json.Marshal(v) //nolint:errchkjson // it comes out of JSON
	return data
}

// announce makes an event of each condition that has become bad, once: after it was written.
func (r *run[T]) announce(obj T) {
	if r.engine.options.Recorder == nil || r.req.Conditions == nil {
		return
	}
	set := r.req.Conditions
	for _, c := range set.Changes() {
		// Ready says again what a declared condition says, which is told of when that becomes bad.
		said := c.Type == condition.Ready && slices.ContainsFunc(set.Conditions(), func(o metav1.Condition) bool {
			return set.Declared(o.Type) && o.Reason == c.Reason && strings.HasPrefix(c.Message, o.Type+": ")
		})
		if c.Severity >= condition.SeverityWarning && !said {
			r.engine.options.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, c.Reason, "Reconcile", "%s", c.Message)
		}
	}
}

// textOf says what is waited for, without the name of the step.
func textOf(waits []ctrlkit.Wait) string {
	texts := make([]string, 0, len(waits))
	for _, w := range waits {
		if !slices.Contains(texts, w.For) {
			texts = append(texts, w.For)
		}
	}
	return strings.Join(texts, "; ")
}

// adopt takes over conditions that a step has set on the object itself instead of on
// Request.Conditions.
func (r *run[T]) adopt(out outcome) outcome {
	if r.req.Conditions == nil {
		return out
	}
	if err := r.req.Conditions.MergeFromObject(r.req.Object); err != nil {
		out = out.join(outcome{err: failure.Mark(fmt.Errorf("%w: %w", ErrReadOnlyField, err), failure.WithClass(failure.ClassTerminal))})
	}
	return out
}

// statusType knows where a type keeps the generation that its status is about.
type statusType struct{ observedGeneration []int }

func statusTypeOf(obj any) statusType {
	status, ok := reflect.TypeOf(obj).Elem().FieldByName("Status")
	if !ok || status.Type.Kind() != reflect.Struct {
		return statusType{}
	}
	field, ok := status.Type.FieldByName("ObservedGeneration")
	if !ok || field.Type.Kind() != reflect.Int64 {
		return statusType{}
	}
	return statusType{append(append([]int{}, status.Index...), field.Index...)}
}

// observe says in the status which generation it is about, if the type has a field for that. Where
// the field is in an embedded struct that is a pointer and nil, there is nothing to say it in.
func (s statusType) observe(obj client.Object) {
	if s.observedGeneration == nil {
		return
	}
	if field, err := reflect.ValueOf(obj).Elem().FieldByIndexErr(s.observedGeneration); err == nil && field.CanSet() {
		field.SetInt(obj.GetGeneration())
	}
}
