// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A resource is the kind of the objects that an engine reconciles, and how they are read.
type resource[T client.Object] struct {
	client    client.Client
	apiReader client.Reader // nil without Options.APIReader
	owner     string        // the field owner of the engine's writes
	epoch     epoch

	gvk    schema.GroupVersionKind
	kind   schema.GroupKind
	status statusType
	// wholeStatus is true once the API server has refused a first status in which fields were
	// missing.
	wholeStatus atomic.Bool
}

func (r *resource[T]) newObject() T {
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is the type
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		u.SetGroupVersionKind(r.gvk)
	}
	return obj
}

// is returns an object as one of the kind, and whether it is one. A type may stand for any kind.
func (r *resource[T]) is(obj client.Object) (T, bool) {
	typed, ok := obj.(T)
	if _, anyKind := obj.(*unstructured.Unstructured); anyKind && ok {
		ok = obj.GetObjectKind().GroupVersionKind().GroupKind() == r.kind
	}
	return typed, ok
}

// kindOf returns the kind of T. Given is what the options say, for a type that stands for any kind.
func (r *resource[T]) kindOf(scheme *runtime.Scheme, given schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	obj := client.Object(r.newObject())
	switch obj.(type) {
	case *metav1.PartialObjectMetadata:
		return given, errors.New("type *v1.PartialObjectMetadata: metadata alone has no status to keep: use the Go type of the kind, or one of your own with its metadata, spec and status, and register that with the scheme")
	case *unstructured.Unstructured:
		if given.Version == "" || given.Kind == "" {
			return given, errors.New("type *unstructured.Unstructured stands for any kind: set Options.Kind to the one that is meant, with its version, or use the Go type of the kind")
		}
		return given, nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	switch {
	case err != nil:
		return gvk, fmt.Errorf("kind of %T: %w: register it with the scheme of the manager", obj, err)
	case !given.Empty():
		return gvk, fmt.Errorf("kind %s: it is known from type %T: leave Options.Kind empty", given, obj)
	}
	return gvk, nil
}

// cached reads an object from the cache. It is not a copy.
func (r *resource[T]) cached(ctx context.Context, key client.ObjectKey) (T, error) {
	obj := r.newObject()
	return obj, r.client.Get(ctx, key, obj, track.Sharing...)
}

// metadata reads the metadata of an object from the API server. It is for engines with
// Options.APIReader.
func (r *resource[T]) metadata(ctx context.Context, key client.ObjectKey, run *journal.Run) (*metav1.PartialObjectMetadata, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(r.gvk)
	err := r.apiReader.Get(ctx, key, obj)
	if run != nil {
		run.Note(ctx, journal.Read{Step: track.StepFrom(ctx), Object: run.Object, Live: true, Err: err})
	}
	return obj, err
}

// newest reads an object from the API server. Without Options.APIReader it sends a patch that
// changes nothing, which the API server answers with the object.
func (r *resource[T]) newest(ctx context.Context, key client.ObjectKey, uid types.UID, run *journal.Run) (T, error) {
	obj := r.newObject()
	var err error
	if r.apiReader != nil {
		err = r.apiReader.Get(ctx, key, obj)
	} else {
		obj.SetNamespace(key.Namespace)
		obj.SetName(key.Name)
		nothing := mustJSON(map[string]any{"metadata": map[string]any{"uid": uid}})
		err = r.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, nothing), client.FieldOwner(r.owner))
	}
	if run != nil {
		run.Note(ctx, journal.Read{Object: run.Object, Live: true, Err: err})
	}
	return obj, err
}
