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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
)

// saved is what a reconcile has written to its own object.
type saved struct{ metadata, status bool }

func (s saved) any() bool { return s.metadata || s.status }

// save writes what the steps have changed: the metadata, then the status, each if it has changed. Both carry the resource version that the
// reconcile began with, so that nothing newer is overwritten; after a conflict everything is looked at anew.
func (r *run[T]) save(ctx context.Context, out outcome) outcome {
	// The cheaper comparison first: mostly nothing has changed, not even what the other one overlooks.
	if reflect.DeepEqual(r.base(), r.req.Object) || equality.Semantic.DeepEqual(r.base(), r.req.Object) {
		return out
	}
	changed, err := r.changes()
	if err != nil {
		return r.failedSaving(ctx, out, err)
	}
	var errs []error
	if err := r.refuse(changed); err != nil {
		errs = append(errs, err)
	}
	ctx, cancel := granted(ctx)
	defer cancel()
	metadata, _ := changed["metadata"].(map[string]any)
	switch {
	case len(metadata) > 0 && r.saved.metadata:
		// The finalizer was this reconcile's write. What else has changed is written by the next, which does the same again.
		out = out.join(outcome{after: 1})
	case len(metadata) > 0:
		err := r.patchMetadata(ctx, metadata)
		switch {
		case apierrors.IsNotFound(err) && !r.read.GetDeletionTimestamp().IsZero():
			// It is gone already, most likely. A wrong answer looks the same, and only looking again tells them apart.
			return out.join(outcome{after: lookAgainGone})
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err): // the status would fare the same
			return r.failedSaving(ctx, out, append(errs, writeFailed("writing the metadata", err))...)
		case err != nil:
			errs = append(errs, writeFailed("writing the metadata", err))
		}
	}
	if len(errs) > 0 {
		out = r.failedSaving(ctx, out, errs...)
		changed = r.retold(ctx, &out, changed)
	}
	if status, ok := changed["status"]; ok {
		err := r.patchStatus(ctx, status)
		if err != nil && !(apierrors.IsNotFound(err) && r.memory.isCleaned()) {
			return r.failedSaving(ctx, out, writeFailed("writing the status", err))
		}
	}
	return out
}

// retold returns what has changed when the conditions also tell what could not be saved.
func (r *run[T]) retold(ctx context.Context, out *outcome, changed map[string]any) map[string]any {
	deletion := ""
	if !r.read.GetDeletionTimestamp().IsZero() {
		deletion = ReasonCleaningUp
	}
	r.summarise(ctx, out, deletion)
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

// base is what the object is compared with: as the cache had it, or as it was after the finalizer was written.
func (r *run[T]) base() T { return r.req.snapshot }

// rebase has the object compared with one that has the finalizers.
func (r *run[T]) rebase(finalizers []string) {
	base := r.base().DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	base.SetFinalizers(finalizers)
	base.SetResourceVersion(r.req.Object.GetResourceVersion())
	r.req.snapshot = base
}

// keepStatus undoes changes of the status: the object goes, and nobody would read it.
func (r *run[T]) keepStatus() {
	if v := reflect.ValueOf(r.req.Object).Elem().FieldByName("Status"); v.IsValid() {
		v.Set(reflect.ValueOf(r.base()).Elem().FieldByName("Status"))
	}
}

// changes returns what differs, as a merge patch.
func (r *run[T]) changes() (map[string]any, error) {
	data, err := client.MergeFrom(r.base()).Data(r.req.Object)
	if err != nil {
		return nil, fmt.Errorf("comparing the object with what was read: %w", err)
	}
	changed := make(map[string]any)
	if err := json.Unmarshal(data, &changed); err != nil {
		return nil, fmt.Errorf("comparing the object with what was read: %w", err)
	}
	return changed, nil
}

// ErrNotOurs says that a step has changed a part of the object that the engine does not write.
var ErrNotOurs = errors.New("a step has changed what is not the operator's")

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
			if !slices.Contains([]string{"labels", "annotations", "finalizers", "ownerReferences"}, key) {
				refused = append(refused, ".metadata."+key)
				delete(metadata, key)
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return failure.As(fmt.Errorf("%w: %s: change labels, annotations, finalizers, owner references or the status of the object, and nothing else",
		ErrNotOurs, strings.Join(refused, ", ")), failure.OfClass(failure.Terminal))
}

func mustJSON(v any) []byte {
	data, _ := json.Marshal(v) //nolint:errchkjson // it comes out of JSON
	return data
}

func (r *run[T]) patchMetadata(ctx context.Context, metadata map[string]any) error {
	target, patch := r.target(metadata, nil)
	if err := r.own().Patch(ctx, target, patch, client.FieldOwner(r.engine.options.Name)); err != nil {
		return err
	}
	r.saved.metadata = true
	r.wrote(target)
	return nil
}

func (r *run[T]) patchStatus(ctx context.Context, status any) error {
	target, patch := r.target(nil, status)
	if err := r.own().Status().Patch(ctx, target, patch, client.FieldOwner(r.engine.options.Name)); err != nil {
		return err
	}
	r.saved.status = true
	r.wrote(target)
	r.announce(target)
	return nil
}

// own returns the client for the object itself. Its writes carry a resource version, which the API server compares: they need no fence.
func (r *run[T]) own() client.Client {
	unfenced := &core{run: r.core.run, table: r.core.table, own: r.core}
	return &recorder{r.engine.options.Client, unfenced}
}

// target returns an object of the name of ours, for the answer, and the patch of it.
func (r *run[T]) target(metadata map[string]any, status any) (T, client.Patch) {
	target := r.engine.newObject()
	target.SetNamespace(r.request.Namespace)
	target.SetName(r.request.Name)
	guarded := map[string]any{"resourceVersion": r.req.Object.GetResourceVersion(), "uid": r.read.GetUID()}
	maps.Copy(guarded, metadata)
	content := map[string]any{"metadata": guarded}
	if status != nil {
		content["status"] = status
	}
	return target, client.RawPatch(types.MergePatchType, mustJSON(content))
}

// wrote takes over the resource version after a write of ours.
func (r *run[T]) wrote(answer T) {
	r.req.Object.SetResourceVersion(answer.GetResourceVersion())
	r.memory.wrote(answer.GetResourceVersion(), r.now)
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
		if c.Severity >= condition.Warning && !said {
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

// observe says in the status which generation it is about, if the type has a field for that.
func (s statusType) observe(obj client.Object) {
	if s.observedGeneration != nil {
		reflect.ValueOf(obj).Elem().FieldByIndex(s.observedGeneration).SetInt(obj.GetGeneration())
	}
}
