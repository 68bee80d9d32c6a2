// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// savedPart is a part of the object that is written by a request of its own. Its text is the key
// of the part in JSON.
type savedPart string

const (
	partMetadata savedPart = "metadata"
	partStatus   savedPart = "status"
)

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
// the object of the base would take away list items of others. So each further change of that part
// in this reconcile is applied to what the API server has answered.
//
// Ours is the object with the change, and content the merge patch that makes it of the base.
func (r *run[T]) write(ctx context.Context, part savedPart, ours T, content any) error {
	theirs, merged := r.theirs[part]
	changed, err := true, error(nil)
	if merged {
		conflict := apierrors.NewConflict(schema.GroupResource{Group: r.engine.kind.Group, Resource: r.engine.kind.Kind}, r.request.Name, errChangedMeanwhile)
		if content, changed, err = r.merge(part, ours, theirs, conflict); err != nil {
			return err
		}
	}
	for rebased := 0; changed; rebased++ {
		answer, err := r.send(ctx, part, ours, content)
		if err == nil && merged {
			r.merged(part, answer)
		}
		if !apierrors.IsConflict(err) || rebased == mostRebases {
			return err
		}
		if content, changed, err = r.rebase(ctx, part, ours, err); err != nil {
			return err
		}
		merged = true
	}
	r.advance(part, ours, *r.basedOn(part)) // the other client has written the same
	return nil
}

// errChangedMeanwhile is the cause of a conflict that no request was needed to find.
var errChangedMeanwhile = errors.New("the object has been modified")

// merged remembers what the API server has of a part, which is more than the base.
func (r *run[T]) merged(part savedPart, theirs T) {
	if r.theirs == nil {
		r.theirs = make(map[savedPart]T)
	}
	r.theirs[part] = theirs
}

// send sends the patch once.
func (r *run[T]) send(ctx context.Context, part savedPart, ours T, content any) (T, error) {
	if part == partStatus {
		answer, err := r.sendStatus(ctx, ours, content)
		if err != nil {
			return answer, err
		}
		r.saved.status = true
		r.wrote(part, answer)
		r.advance(part, ours, answer.GetResourceVersion())
		r.announce(answer)
		return answer, nil
	}
	metadata, _ := content.(map[string]any)
	answer, err := r.patch(ctx, part, metadata, nil)
	if err != nil {
		return answer, err
	}
	r.saved.metadata = true
	r.wrote(part, answer)
	r.advance(part, ours, answer.GetResourceVersion())
	return answer, nil
}

// sendStatus sends a patch of the status. A status that is not there yet may have required fields
// whose Go value is the zero value: they are no change, and missing in the patch, which the API
// server refuses. Then the whole status is sent, and from then on for each object without one.
func (r *run[T]) sendStatus(ctx context.Context, ours T, content any) (T, error) {
	first := !hasStatus(r.base())
	if first && r.engine.wholeStatus.Load() {
		content = wholeStatus(ours, content)
	}
	answer, err := r.patch(ctx, partStatus, nil, content)
	if !first || !apierrors.IsInvalid(err) || r.engine.wholeStatus.Load() {
		return answer, err
	}
	again, secondErr := r.patch(ctx, partStatus, nil, wholeStatus(ours, content))
	if secondErr != nil {
		return answer, err
	}
	r.engine.wholeStatus.Store(true)
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
func (r *run[T]) patch(ctx context.Context, part savedPart, metadata map[string]any, status any) (T, error) {
	target := r.engine.newObject()
	target.SetNamespace(r.request.Namespace)
	target.SetName(r.request.Name)
	guarded := map[string]any{"resourceVersion": *r.basedOn(part), "uid": r.read.GetUID()}
	maps.Copy(guarded, metadata)
	owner := client.FieldOwner(r.engine.options.Name)
	if status == nil {
		patch := client.RawPatch(types.MergePatchType, mustJSON(map[string]any{"metadata": guarded}))
		return target, r.own().Patch(ctx, target, patch, owner)
	}
	patch := client.RawPatch(types.MergePatchType, mustJSON(map[string]any{"metadata": guarded, "status": status}))
	return target, r.own().Status().Patch(ctx, target, patch, owner)
}

// own returns the client for the object itself. Its writes carry a resource version, which the API
// server compares: they need no fence.
func (r *run[T]) own() client.Client {
	unfenced := &core{run: r.core.run, table: r.core.table, own: r.core}
	return &recorder{r.engine.options.Client, unfenced}
}

// basedOn returns the resource version of which the base has a part.
func (r *run[T]) basedOn(part savedPart) *string {
	if part == partStatus {
		return &r.statusVersion
	}
	return &r.metadataVersion
}

// wrote takes over the resource version after a write of ours.
func (r *run[T]) wrote(part savedPart, answer T) {
	version := answer.GetResourceVersion()
	if r.statusVersion == r.metadataVersion { // the other part is as it was
		r.statusVersion, r.metadataVersion = version, version
	}
	*r.basedOn(part) = version
	r.memory.wrote(version, time.Now())
	if !r.rebased { // else what was read may be old
		r.memory.setFresh()
	}
}

// advance has the object compared with what was saved: the part as it is in ours.
func (r *run[T]) advance(part savedPart, ours T, version string) {
	base, saved := r.base().DeepCopyObject().(T), ours.DeepCopyObject().(T) //nolint:errcheck // copies have the type
	if part == partStatus {
		copyStatus(base, saved)
	} else {
		base.SetLabels(saved.GetLabels())
		base.SetAnnotations(saved.GetAnnotations())
		base.SetFinalizers(saved.GetFinalizers())
		base.SetOwnerReferences(saved.GetOwnerReferences())
	}
	base.SetResourceVersion(version)
	r.req.Object.SetResourceVersion(version)
	r.req.snapshot = base
}

// rebase returns the patch that makes what this reconcile has changed on the newest version of the
// object, and reports whether there is anything to change. The error is conflict, with the fields,
// if another client has changed them too, or if it is another object now.
func (r *run[T]) rebase(ctx context.Context, part savedPart, ours T, conflict error) (any, bool, error) {
	live, err := r.newest(ctx)
	switch {
	case err != nil:
		return nil, false, errors.Join(conflict, fmt.Errorf("reading the newest version: %w", err))
	case live.GetUID() != r.read.GetUID():
		return nil, false, conflict
	}
	patch, changed, err := r.merge(part, ours, live, conflict)
	if err != nil {
		return nil, false, err
	}
	*r.basedOn(part), r.rebased = live.GetResourceVersion(), true
	r.memory.sawLive(live.GetResourceVersion())
	r.merged(part, live)
	return patch, changed, nil
}

// merge returns the patch that makes what this reconcile has changed on theirs, an object as the
// API server has it, and reports whether there is anything to change. The error is conflict, with
// the fields, if another client has changed them too.
func (r *run[T]) merge(part savedPart, ours, theirs T, conflict error) (any, bool, error) {
	base, err1 := treeOf(r.base())
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

// adds reports whether metadata has a finalizer that it did not have before.
func adds(before, metadata any) bool {
	finalizers := func(metadata any) []any {
		m, _ := metadata.(map[string]any)
		all, _ := m["finalizers"].([]any)
		return all
	}
	return slices.ContainsFunc(finalizers(metadata), func(f any) bool { return !slices.Contains(finalizers(before), f) })
}

// newest reads the object past the cache. Without Options.APIReader it sends a patch that changes
// nothing, which the API server answers with the object.
func (r *run[T]) newest(ctx context.Context) (T, error) {
	obj := r.engine.newObject()
	var err error
	if live := r.engine.options.APIReader; live != nil {
		err = live.Get(ctx, r.key(), obj)
	} else {
		obj.SetNamespace(r.request.Namespace)
		obj.SetName(r.request.Name)
		nothing := mustJSON(map[string]any{"metadata": map[string]any{"uid": r.read.GetUID()}})
		err = r.engine.options.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, nothing), client.FieldOwner(r.engine.options.Name))
	}
	if r.journal != nil {
		r.journal.Note(ctx, journal.Read{Object: r.journal.Object, Live: true, Err: err})
	}
	return obj, err
}

// writeFailed makes the error of a write to our own object. If it is gone, the newest version says
// so, as with a conflict; if it is not, its definition has no status subresource.
func (r *run[T]) writeFailed(ctx context.Context, part savedPart, err error) error {
	doing := "writing the " + string(part)
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if part == partStatus {
		if live, liveErr := r.newest(ctx); liveErr == nil && live.GetUID() == r.read.GetUID() {
			return failure.Mark(fmt.Errorf("%s: %w", doing, err), failure.WithClass(failure.ClassInvalid), failure.WithReason(ReasonNoStatusSubresource), failure.WithRemedy(
				fmt.Sprintf("the definition of %s has no status subresource: add it (the marker +kubebuilder:subresource:status) and install the definition again", r.engine.kind)))
		}
	}
	return failure.Mark(fmt.Errorf("%s: %w", doing, err), failure.WithClass(failure.ClassConflict))
}

// treeOf returns an object as JSON has it.
func treeOf(obj any) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("marshaling the object: %w", err)
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(data, &tree); err != nil { // it keeps large integers exact
		return nil, fmt.Errorf("unmarshaling the object: %w", err)
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(key string, _ any) bool { return !slices.Contains(ours, key) })
	}
	return tree, nil
}
