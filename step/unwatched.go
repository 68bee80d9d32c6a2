// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// unwatched is what an engine knows of the kinds that its steps read and that nothing watches.
type unwatched struct {
	declared []schema.GroupKind // they are read on purpose
	watched  *track.Watched     // nil as long as it is not known what is watched

	mu       sync.Mutex // for all below
	reported map[schema.GroupKind]bool
}

// watch notes what the controller watches, beside its own kind. Of owned kinds it watches only what its
// objects own.
func (u *unwatched) watch(own schema.GroupKind, kinds, owned []schema.GroupKind) {
	u.watched = track.NewWatched(append(append([]schema.GroupKind{own}, u.declared...), kinds...), owned)
}

// onlyOwned reports whether a watch is for nothing but what the reconciled objects own.
func onlyOwned(w Watch) bool { return w.Owned && w.Mapped == nil && w.NamedBy == nil && !w.Read }

// isFirst reports whether a kind was not reported before.
func (u *unwatched) isFirst(kind schema.GroupKind) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reported[kind] {
		return false
	}
	if u.reported == nil {
		u.reported = make(map[schema.GroupKind]bool)
	}
	u.reported[kind] = true
	return true
}

// remedyUnwatched is what the authors of an operator can do about a kind that nothing watches.
const remedyUnwatched = "watch the kind with Watches of a step, such as WatchNamed, or with Owns, or Watches and Engine.WrapHandler; " +
	"list what Connect of an external resource reads in external.Options.Reads; " +
	"or return a time, as ctrlkit.RequeueWithin and ctrlkit.Poll do; " +
	"or list it in Options.Unwatched if a change need not be noticed"

// soon is a time of another step within which a wait ends well enough.
const soon = time.Minute

// noteUnwatched reports what the reconcile has read of kinds that nothing watches, if nothing
// reconciles the object again:
//
//   - A requested time does, and the backoff of a failure. A step that waits without a time is not
//     helped by the time of another one that has passed, unless that comes soon.
//   - Its own writes do: what it reads then counts. A wait counts at once, because a predicate may
//     hide the write of the status that says so.
//   - A resync does, too late to count: it comes after ten hours by default.
//
// Of what was read with [track.WithPrompt], only a watch is good enough: neither a time nor a backoff.
func (r *run[T]) noteUnwatched(ctx context.Context, how journal.Result, out outcome) {
	if r.work == nil {
		return
	}
	ends := out.err == nil && (how == journal.ResultDone || how == journal.ResultWaiting || how == journal.ResultStalled)
	reads := slices.DeleteFunc(slices.Clone(r.record.Unwatched()), func(read track.UnwatchedRead) bool {
		return !read.Prompt && (!ends || out.after > 0 && (out.after <= soon || !slices.Contains(r.req.untimed, read.Step)))
	})
	if len(reads) == 0 || len(out.waits) == 0 && (r.saver.writer.saved.any() || len(r.record.Writes()) > 0) {
		return
	}
	for _, read := range reads {
		if r.journal != nil {
			r.journal.Note(ctx, journal.Unwatched{Step: read.Step, Object: read.Object})
		}
		if kind := read.Kind(); r.engine.unwatched.isFirst(kind) {
			r.req.Logger.Info(track.UnwatchedMessage, track.UnwatchedKind, kind.String(), track.UnwatchedStep, read.Step,
				"read", read.Object.String(), "waits", len(out.waits) > 0, "remedy", remedyUnwatched)
		}
	}
}

// kindsOf returns the kinds of objects.
func kindsOf(c client.Client, objects []client.Object) ([]schema.GroupKind, error) {
	var kinds []schema.GroupKind
	for i, obj := range objects {
		if obj == nil {
			return nil, fmt.Errorf("object %d is nil: use an empty one of the kind, such as &corev1.Secret{}", i+1)
		}
		gvk, err := c.GroupVersionKindFor(obj)
		if err != nil {
			return nil, fmt.Errorf("kind of %T: %w: register it with the scheme of the manager", obj, err)
		}
		kinds = append(kinds, gvk.GroupKind())
	}
	return kinds, nil
}

// watchedBy returns the kinds that b watches, and those of which it watches what is owned. They are not
// known if one of its sources does not say its kind. The builder does not say what it was given, and its fields are only read here: if one is
// not found, it is not known either.
func watchedBy(b *builder.Builder, c client.Client) (kinds, owned []schema.GroupKind, known bool) {
	w := watches{client: c, known: true}
	inputs := reflect.ValueOf(b).Elem()
	w.inputs(inputs.FieldByName("ownsInput"), "object")
	owned, w.kinds = w.kinds, nil
	w.inputs(inputs.FieldByName("watchesInput"), "obj")
	if own := inputs.FieldByName("forInput"); own.Kind() != reflect.Struct {
		w.known = false
	} else if object := own.FieldByName("object"); object.Kind() != reflect.Interface {
		w.known = false
	} else if !object.IsNil() {
		w.object(object)
	}
	w.sources(inputs.FieldByName("rawSources"))
	return w.kinds, owned, w.known
}

// watches are the watches of a builder while they are read.
type watches struct {
	client client.Client
	kinds  []schema.GroupKind
	known  bool
}

// inputs reads a list of inputs, of which each has an object in a field.
func (w *watches) inputs(list reflect.Value, field string) {
	if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
		w.known = false
		return
	}
	for i := range list.Len() {
		w.object(list.Index(i).FieldByName(field))
	}
}

// sources reads a list of sources.
func (w *watches) sources(list reflect.Value) {
	if list.Kind() != reflect.Slice {
		w.known = false
		return
	}
	for i := range list.Len() {
		source := list.Index(i)
		for source.Kind() == reflect.Interface || source.Kind() == reflect.Pointer {
			source = source.Elem()
		}
		switch {
		case !source.IsValid():
			w.known = false
		case source.Kind() == reflect.Struct && strings.HasPrefix(source.Type().PkgPath(), "sigs.k8s.io/controller-runtime/") && strings.HasPrefix(source.Type().Name(), "Kind["):
			w.object(source.FieldByName("Type"))
		default:
			w.known = false
		}
	}
}

// object reads the kind of an object, which can't be taken out of a field that is not exported.
func (w *watches) object(v reflect.Value) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() != reflect.Pointer || v.IsNil() {
		w.known = false
		return
	}
	switch v.Type() {
	case reflect.TypeFor[*unstructured.Unstructured]():
		w.named(textIn(v.Elem().FieldByName("Object"), "apiVersion"), textIn(v.Elem().FieldByName("Object"), "kind"))
		return
	case reflect.TypeFor[*metav1.PartialObjectMetadata]():
		w.named(v.Elem().FieldByName("APIVersion").String(), v.Elem().FieldByName("Kind").String())
		return
	}
	obj, ok := reflect.New(v.Type().Elem()).Interface().(client.Object)
	if !ok {
		w.known = false
		return
	}
	gvk, err := w.client.GroupVersionKindFor(obj)
	if err != nil {
		w.known = false // the builder says so, and more
		return
	}
	w.kinds = append(w.kinds, gvk.GroupKind())
}

// named adds the kind that an object names which can stand for any.
func (w *watches) named(apiVersion, kind string) {
	if kind == "" {
		w.known = false
		return
	}
	w.kinds = append(w.kinds, schema.GroupKind{Group: track.GroupOf(apiVersion), Kind: kind})
}

// textIn returns the text of a key in the content of an object.
func textIn(content reflect.Value, key string) string {
	if content.Kind() != reflect.Map || content.IsNil() {
		return ""
	}
	v := content.MapIndex(reflect.ValueOf(key))
	if v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.String {
		return ""
	}
	return v.String()
}
