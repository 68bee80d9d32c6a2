// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// savedPart is a part of the object that is written by a request of its own. Its text is the key
// of the part in JSON.
type savedPart string

const (
	partMetadata savedPart = "metadata"
	partStatus   savedPart = "status"
)

// A writer writes parts of the reconciled object, each with the resource version as its guard.
type writer[T client.Object] struct {
	resource   *resource[T]
	read       T // as the reconcile has read it
	req        *Request[T]
	memory     *memory[T]
	record     *track.Record
	conditions *conditions[T]

	saved saved
	// These are the resource versions of which the base has each part.
	metadataVersion, statusVersion string
	rebased                        bool // another client has changed the object since it was read
	quiet                          bool // the event of a write of the status requests no reconcile
	// theirs is what the API server has of a part once the changes of another client are in it,
	// which the base does not have.
	theirs map[savedPart]T
}

func (w *writer[T]) key() client.ObjectKey { return client.ObjectKeyFromObject(w.read) }

// saved is what a reconcile has written to its own object.
type saved struct{ metadata, status bool }

func (s saved) any() bool { return s.metadata || s.status }

// base is what the object is compared with: as the cache had it, or as it was saved last.
func (w *writer[T]) base() T { return w.req.snapshot }

// mostRebases is how often a write is repeated because another client was faster.
const mostRebases = 10

// write sends a merge patch of a part of the object.
//
// The patch carries the resource version of what it is based on. When another client has written
// meanwhile, the API server refuses it; then the newest version is read, and what this reconcile
// has changed is applied to that version, and sent again. If the other client has changed the same
// fields to something else, the conflict is returned: only a new reconcile can decide.
//
// From then on the API server has more than the base, which is what steps see: a patch that makes
// the object from the base would take away list items of others. So each further change of that
// part in this reconcile is applied to what the API server has answered.
//
// Ours is the object with the change, and content the merge patch that makes it from the base.
func (w *writer[T]) write(ctx context.Context, part savedPart, ours T, content any) error {
	theirs, merged := w.theirs[part]
	changed, err := true, error(nil)
	if merged {
		conflict := apierrors.NewConflict(schema.GroupResource{Group: w.resource.kind.Group, Resource: w.resource.kind.Kind}, w.read.GetName(), errChangedMeanwhile)
		if content, changed, err = w.merge(part, ours, theirs, conflict); err != nil {
			return err
		}
	}
	for rebased := 0; changed; rebased++ {
		answer, err := w.send(ctx, part, ours, content)
		if err == nil && merged {
			w.merged(part, answer)
		}
		if !apierrors.IsConflict(err) || rebased == mostRebases {
			return err
		}
		if content, changed, err = w.rebase(ctx, part, ours, err); err != nil {
			return err
		}
		merged = true
	}
	w.advance(part, ours, *w.basedOn(part)) // the other client has written the same
	return nil
}

// errChangedMeanwhile is the cause of a conflict that no request was needed to find.
var errChangedMeanwhile = errors.New("the object has been modified")

// merged notes what the API server has of a part, which is more than the base.
func (w *writer[T]) merged(part savedPart, theirs T) {
	if w.theirs == nil {
		w.theirs = make(map[savedPart]T)
	}
	w.theirs[part] = theirs
}

// send sends the patch once.
func (w *writer[T]) send(ctx context.Context, part savedPart, ours T, content any) (T, error) {
	if part == partStatus {
		answer, err := w.sendExpecting(ctx, ours, content)
		if err != nil {
			return answer, err
		}
		w.saved.status = true
		w.wrote(part, answer)
		w.advance(part, ours, answer.GetResourceVersion())
		w.conditions.announce(ctx, answer)
		return answer, nil
	}
	metadata, _ := content.(map[string]any)
	answer, err := w.patch(ctx, part, metadata, nil)
	if err != nil {
		return answer, err
	}
	w.saved.metadata = true
	w.wrote(part, answer)
	w.advance(part, ours, answer.GetResourceVersion())
	return answer, nil
}

// sendExpecting sends a patch of the status, whose event is an [echo] if the write is quiet. What
// was applied to a version of another client shows the change of that one, too.
func (w *writer[T]) sendExpecting(ctx context.Context, ours T, content any) (T, error) {
	if !w.quiet || w.rebased {
		w.memory.echo.Store(nil)
		return w.sendStatus(ctx, ours, content)
	}
	expected := echoOf(ours)
	w.memory.echo.Store(expected)
	answer, err := w.sendStatus(ctx, ours, content)
	if err != nil {
		w.memory.echo.Store(nil)
		return answer, err
	}
	w.memory.echo.Store(&echo{expected.status, answer.GetResourceVersion()})
	return answer, nil
}

// sendStatus sends a patch of the status. A status that is not there yet may have required fields
// whose Go value is the zero value: they are no change, and missing in the patch, which the API
// server refuses. Then the whole status is sent, and from then on for each object that has none.
func (w *writer[T]) sendStatus(ctx context.Context, ours T, content any) (T, error) {
	first := !hasStatus(w.base())
	if first && w.resource.wholeStatus.Load() {
		content = wholeStatus(ours, content)
	}
	answer, err := w.patch(ctx, partStatus, nil, content)
	if !first || !apierrors.IsInvalid(err) || w.resource.wholeStatus.Load() {
		return answer, err
	}
	again, secondErr := w.patch(ctx, partStatus, nil, wholeStatus(ours, content))
	if secondErr != nil {
		return answer, err
	}
	w.resource.wholeStatus.Store(true)
	return again, nil
}

// wholeStatus returns the whole status of an object without nulls; otherwise if it has none.
func wholeStatus(obj client.Object, otherwise any) any {
	tree, err := treeOf(obj)
	if err != nil || tree["status"] == nil {
		return otherwise
	}
	return withoutNulls(tree["status"])
}

func withoutNulls(v any) any {
	if m, ok := v.(map[string]any); ok {
		maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
		for key, value := range m {
			m[key] = withoutNulls(value)
		}
	}
	return v
}

// patch sends a merge patch of the metadata, or else of the status, with the version that this part
// is based on as its guard, and returns the answer.
func (w *writer[T]) patch(ctx context.Context, part savedPart, metadata map[string]any, status any) (T, error) {
	target := w.resource.newObject()
	target.SetNamespace(w.read.GetNamespace())
	target.SetName(w.read.GetName())
	guarded := map[string]any{"resourceVersion": *w.basedOn(part), "uid": w.read.GetUID()}
	maps.Copy(guarded, metadata)
	content := map[string]any{"metadata": guarded}
	if status != nil {
		content["status"] = status
	}
	patch, err := track.ContentPatch(types.MergePatchType, content)
	if err != nil {
		return target, fmt.Errorf("encoding the change: %w", err)
	}
	owner := client.FieldOwner(w.resource.owner)
	if status == nil {
		return target, w.own().Patch(ctx, target, patch, owner)
	}
	return target, w.own().Status().Patch(ctx, target, patch, owner)
}

// own returns the client for the object itself, whose writes need no fence.
func (w *writer[T]) own() client.Client {
	return track.NewClient(w.resource.client, w.record.Unfenced())
}

// basedOn returns the resource version of which the base has a part.
func (w *writer[T]) basedOn(part savedPart) *string {
	if part == partStatus {
		return &w.statusVersion
	}
	return &w.metadataVersion
}

// wrote takes over the resource version after a write of ours.
func (w *writer[T]) wrote(part savedPart, answer T) {
	version := answer.GetResourceVersion()
	if version != *w.basedOn(part) { // else nothing was written, and the version may be of any age
		w.resource.epoch.begin(version)
	}
	if w.statusVersion == w.metadataVersion { // the other part is as it was
		w.statusVersion, w.metadataVersion = version, version
	}
	*w.basedOn(part) = version
	w.memory.written.note(version, time.Now())
	if !w.rebased { // else what was read may be old
		w.memory.freshness.set()
	}
}

// advance has the object compared with what was saved: the part as it is in ours.
func (w *writer[T]) advance(part savedPart, ours T, version string) {
	base, saved := w.base().DeepCopyObject().(T), ours.DeepCopyObject().(T) //nolint:errcheck // copies have the type
	if part == partStatus {
		copyStatus(base, saved)
	} else {
		base.SetLabels(saved.GetLabels())
		base.SetAnnotations(saved.GetAnnotations())
		base.SetFinalizers(saved.GetFinalizers())
		base.SetOwnerReferences(saved.GetOwnerReferences())
	}
	base.SetResourceVersion(version)
	w.req.Object.SetResourceVersion(version)
	w.req.snapshot = base
}

// rebase returns the patch that makes what this reconcile has changed on the newest version of the
// object, and reports whether there is anything to change. The error is conflict, with the fields,
// if another client has changed them too, or if it is another object now.
func (w *writer[T]) rebase(ctx context.Context, part savedPart, ours T, conflict error) (any, bool, error) {
	live, err := w.newest(ctx)
	switch {
	case err != nil:
		return nil, false, errors.Join(conflict, fmt.Errorf("reading the newest version: %w", err))
	case live.GetUID() != w.read.GetUID():
		return nil, false, conflict
	}
	patch, changed, err := w.merge(part, ours, live, conflict)
	if err != nil {
		return nil, false, err
	}
	*w.basedOn(part), w.rebased = live.GetResourceVersion(), true
	w.memory.freshness.sawLive(live.GetResourceVersion())
	w.merged(part, live)
	return patch, changed, nil
}

// merge returns the patch that makes what this reconcile has changed on theirs, an object as the
// API server has it, and reports whether there is anything to change. The error is conflict, with
// the fields, if another client has changed them too.
func (w *writer[T]) merge(part savedPart, ours, theirs T, conflict error) (any, bool, error) {
	base, err1 := treeOf(w.base())
	our, err2 := treeOf(ours)
	their, err3 := treeOf(theirs)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, false, errors.Join(conflict, err)
	}
	m := &merge{}
	merged := m.values("."+string(part), base[string(part)], our[string(part)], their[string(part)])
	if len(m.both) > 0 {
		return nil, false, fmt.Errorf("another client has also changed %s: %w", strings.Join(m.both, ", "), conflict)
	}
	if !theirs.GetDeletionTimestamp().IsZero() && part == partMetadata && adds(their[string(part)], merged) {
		return nil, false, conflict // the API server takes no new finalizers any more
	}
	patch, changed := difference(their[string(part)], merged)
	return patch, changed, nil
}

// refusedStatus returns the fields of the status that an error of the API server names, nil if it
// names none, or the conditions.
func refusedStatus(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		field, ok := strings.CutPrefix(cause.Field, string(partStatus)+".")
		field, _, _ = strings.Cut(field, ".")
		field, _, _ = strings.Cut(field, "[")
		if !ok || field == "conditions" {
			return nil
		}
		fields = append(fields, field)
	}
	return fields
}

// writeWithout writes the status of ours without the fields that the API server has refused, or its
// conditions alone if it is not known which those are, or refused again.
func (w *writer[T]) writeWithout(ctx context.Context, ours T, refused []string) error {
	if len(refused) == 0 {
		return w.writeConditions(ctx, ours)
	}
	base, err1 := treeOf(w.base())
	tree, err2 := jsonOf(ours)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	all, _ := tree.(map[string]any)
	status, _ := all[string(partStatus)].(map[string]any)
	was, _ := base[string(partStatus)].(map[string]any)
	for _, field := range refused {
		if delete(status, field); was[field] != nil {
			status[field] = was[field]
		}
	}
	rest := w.resource.newObject()
	if err := json.Unmarshal(mustJSON(all), rest); err != nil {
		return err
	}
	patch, changed := difference(base[string(partStatus)], status)
	if !changed || w.write(ctx, partStatus, rest, patch) == nil {
		return nil
	}
	return w.writeConditions(ctx, ours)
}

// writeConditions writes the conditions of ours and nothing else of its status.
func (w *writer[T]) writeConditions(ctx context.Context, ours T) error {
	all, err := condition.Of(ours)
	if err != nil {
		return err
	}
	small := w.base().DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	if err := condition.Store(small, all); err != nil {
		return err
	}
	base, err1 := treeOf(w.base())
	tree, err2 := treeOf(small)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if patch, changed := difference(base[string(partStatus)], tree[string(partStatus)]); changed {
		return w.write(ctx, partStatus, small, patch)
	}
	return nil
}

// newest reads the object from the API server.
func (w *writer[T]) newest(ctx context.Context) (T, error) {
	return w.resource.newest(ctx, w.key(), w.read.GetUID(), w.record.Journal)
}

// writeFailed returns the error of a write to the object. A read of the newest version shows
// whether the object is gone, which is treated as a conflict, or its definition has no status
// subresource.
func (w *writer[T]) writeFailed(ctx context.Context, part savedPart, err error) error {
	doing := "writing the " + string(part)
	if part == partStatus && failure.IsTooLarge(err) {
		return failure.Mark(fmt.Errorf("%s: %w", doing, err), failure.WithRemedy("the status is too large, and only its conditions are written: have the operator keep less in it"))
	}
	if part == partStatus && apierrors.IsInvalid(err) {
		return failure.Mark(fmt.Errorf("%s: %w", doing, err), failure.WithRemedy(fmt.Sprintf(
			"the definition of %s refuses what the operator writes: install the definition that belongs to this version of the operator; the rest of the status is written", w.resource.kind)))
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if part == partStatus {
		if live, liveErr := w.newest(ctx); liveErr == nil && live.GetUID() == w.read.GetUID() {
			return failure.Mark(fmt.Errorf("%s: %w", doing, err), failure.WithClass(failure.ClassInvalid), failure.WithReason(reasonNoStatusSubresource), failure.WithRemedy(
				fmt.Sprintf("the definition of %s has no status subresource: add it (the marker +kubebuilder:subresource:status) and install the definition again", w.resource.kind)))
		}
	}
	return failure.Mark(fmt.Errorf("%s: %w", doing, err), failure.WithClass(failure.ClassConflict))
}
