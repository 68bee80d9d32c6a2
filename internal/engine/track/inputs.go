// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"hash/fnv"
	"io"
	"reflect"
	"slices"

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
	// Wrote is true if the reconcile has saved its object, or written another one, which the next one
	// reads.
	Wrote bool
}

// An input is one object, one list, or a number that a step has. It is small: an operator keeps
// those of each object.
type input struct {
	kind    *kind            // nil for a number
	key     client.ObjectKey // of a list its namespace, empty for all
	version string           // of the object; empty if it was not there
	list    *listed          // nil for an object and a number
	number  *number          // nil for an object and a list
}

// listed is what is known of a list.
type listed struct {
	options []client.ListOption
	digest  uint64
}

// A number is of what a step knows of the cluster by itself.
type number struct {
	now  func() uint64
	then uint64
}

// object returns the type of the objects that a watch reports when the input changes, nil if it is
// not known.
func (i *input) object() reflect.Type {
	if !i.kind.gvk.Empty() {
		return nil
	}
	if i.list == nil {
		return i.kind.t
	}
	return i.kind.item
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
		in.add(input{kind: kindOf(obj), key: key, version: obj.GetResourceVersion()})
	case apierrors.IsNotFound(err):
		in.add(input{kind: kindOf(obj), key: key})
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
	o := client.ListOptions{}
	in.add(input{kind: kindOf(list), key: client.ObjectKey{Namespace: o.ApplyOptions(options).Namespace}, list: &listed{
		options: append(append([]client.ListOption(nil), options...), client.UnsafeDisableDeepCopy), digest: digest,
	}})
}

// wrote has the inputs of an object be of the version after a write.
func (in *Inputs) wrote(child input) {
	read := false
	for i := range in.all {
		if in.all[i].kind == child.kind && in.all[i].key == child.key && in.all[i].list == nil {
			in.all[i].version, read = child.version, true
		}
	}
	if !read {
		in.add(child)
	}
}

// depend adds a number that changes with what it stands for.
func (in *Inputs) depend(now func() uint64) { in.add(input{number: &number{now, now()}}) }

// Clip returns the inputs without spare capacity, to be kept.
func (in *Inputs) Clip() *Inputs {
	in.all = slices.Clip(slices.Clone(in.all))
	return in
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
	if i.number != nil {
		return i.number.now() == i.number.then
	}
	if i.list != nil {
		list := i.kind.newEmpty().(client.ObjectList) //nolint:errcheck // it is the type of one
		if reader.List(ctx, list, i.list.options...) != nil {
			return false
		}
		digest, ok := digestOf(list)
		return ok && digest == i.list.digest
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

// read returns the version that a reader has.
func (i *input) read(ctx context.Context, reader client.Reader) (version string, err error) {
	obj := i.kind.borrow()
	defer i.kind.giveBack(obj)
	err = reader.Get(ctx, i.key, obj, Sharing...)
	return obj.GetResourceVersion(), err
}

// EmptyOf returns a new object of the type of obj. Types that can stand for any kind keep theirs.
func EmptyOf(obj runtime.Object) runtime.Object { return kindOf(obj).newEmpty() }

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
