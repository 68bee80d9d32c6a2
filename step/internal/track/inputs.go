// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"hash/fnv"
	"io"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Inputs are what a reconcile has read, and in which versions. They are compared with the cache to
// find out whether the next reconcile would see anything new.
type Inputs struct {
	all []input
	// unknown is true if something was read that can't be compared.
	unknown bool
}

// An input is one object, or one list.
type input struct {
	empty   runtime.Object // of the type that was read, to read into
	key     client.ObjectKey
	options []client.ListOption
	version string // of the object; empty if it was not there
	digest  uint64 // of the list
}

// mostInputs limits the inputs that are kept for an object. Steps that read more run each time.
const mostInputs = 64

func (in *Inputs) add(i input) {
	if len(in.all) >= mostInputs {
		in.unknown = true
		return
	}
	in.all = append(in.all, i)
}

func (in *Inputs) got(key client.ObjectKey, obj client.Object, err error) {
	switch {
	case err == nil && obj.GetResourceVersion() != "":
		in.add(input{empty: EmptyOf(obj), key: key, version: obj.GetResourceVersion()})
	case apierrors.IsNotFound(err):
		in.add(input{empty: EmptyOf(obj), key: key})
	default:
		in.unknown = true
	}
}

func (in *Inputs) listed(list client.ObjectList, options []client.ListOption, err error) {
	digest, ok := digestOf(list)
	if err != nil || !ok {
		in.unknown = true
		return
	}
	in.add(input{empty: EmptyOf(list), options: append(append([]client.ListOption(nil), options...), client.UnsafeDisableDeepCopy), digest: digest})
}

// Unchanged reports whether a reader still returns the same.
func (in *Inputs) Unchanged(ctx context.Context, reader client.Reader) bool {
	if in == nil || in.unknown {
		return false
	}
	for i := range in.all {
		if !in.all[i].unchanged(ctx, reader) {
			return false
		}
	}
	return true
}

func (i *input) unchanged(ctx context.Context, reader client.Reader) bool {
	// An unstructured object has the methods of a list, too.
	if _, ok := i.empty.(client.Object); !ok {
		list := EmptyOf(i.empty).(client.ObjectList) //nolint:errcheck // of the same type
		if reader.List(ctx, list, i.options...) != nil {
			return false
		}
		digest, ok := digestOf(list)
		return ok && digest == i.digest
	}
	version, err := i.read(ctx, reader)
	switch {
	case err == nil:
		return i.version != "" && version == i.version
	case apierrors.IsNotFound(err):
		return i.version == ""
	default:
		return false
	}
}

// Sharing are the options of a read whose result is neither changed nor kept. All reads share them:
// a slice for each would cost more than the rest of the call.
var Sharing = []client.GetOption{client.UnsafeDisableDeepCopy}

// read returns the version that a reader has. It reads into the same object each time, of which an
// idle operator would otherwise make thousands, and leaves it empty, so that it keeps nothing of
// the cache alive.
func (i *input) read(ctx context.Context, reader client.Reader) (version string, err error) {
	obj := i.empty.(client.Object) //nolint:errcheck // it is no list
	if standsForAny(obj) {
		obj = EmptyOf(obj).(client.Object) //nolint:errcheck // of the same type
	} else {
		defer reflect.ValueOf(obj).Elem().SetZero()
	}
	err = reader.Get(ctx, i.key, obj, Sharing...)
	return obj.GetResourceVersion(), err
}

// EmptyOf returns a new object of the type of obj. Types that can stand for any kind keep theirs.
func EmptyOf(obj runtime.Object) runtime.Object {
	empty := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object) //nolint:errcheck // it is the type of one
	if standsForAny(obj) {
		empty.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	}
	return empty
}

// standsForAny reports whether the Go type of obj does not say its kind.
func standsForAny(obj runtime.Object) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	return false
}

// digestOf returns a number for the names and versions of the items of a list, whatever their
// order: caches list in no particular one.
func digestOf(list client.ObjectList) (uint64, bool) {
	var sum uint64
	n := uint64(0)
	err := meta.EachListItem(list, func(item runtime.Object) error {
		obj, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		h := fnv.New64a()
		for _, part := range []string{string(obj.GetUID()), "/", obj.GetResourceVersion()} {
			_, _ = io.WriteString(h, part) // writing to a hash never fails
		}
		sum += h.Sum64()
		n++
		return nil
	})
	return sum ^ n, err == nil
}
