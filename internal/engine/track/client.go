// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/journal"
)

// A Client records what is read and written through it.
type Client struct {
	client.Client
	record *Record
}

// NewClient returns a client that records in record what is read and written through c.
func NewClient(c client.Client, record *Record) *Client { return &Client{c, record} }

func (r *Client) object(obj runtime.Object, key client.ObjectKey) journal.Object {
	gvk, err := r.Client.GroupVersionKindFor(obj)
	if err != nil { // the scheme does not know the type, and the call itself fails
		return journal.Object{Kind: "unknown", Namespace: key.Namespace, Name: key.Name}
	}
	return journal.ObjectOf(gvk.GroupKind(), key)
}

// Get reads an object. That of the request stays as it is.
func (r *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	obj = r.record.target(key, obj)
	r.reading(obj, key)
	err := r.Client.Get(ctx, key, obj, opts...)
	r.record.got(key, obj, err)
	r.noteUnwatched(ctx, obj, key, err)
	r.read(ctx, obj, key, err, false)
	return err
}

// reading says that an object is about to be read.
func (r *Client) reading(obj client.Object, key client.ObjectKey) {
	if r.record.Reading == nil {
		return
	}
	if gvk, err := r.Client.GroupVersionKindFor(obj); err == nil {
		r.record.Reading(gvk.GroupKind(), key)
	}
}

// List reads objects.
func (r *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := r.Client.List(ctx, list, opts...)
	r.record.listed(list, opts, err)
	o := client.ListOptions{}
	key := client.ObjectKey{Namespace: o.ApplyOptions(opts).Namespace}
	r.noteUnwatched(ctx, list, key, err)
	r.read(ctx, list, key, err, false)
	return err
}

func (r *Client) read(ctx context.Context, obj runtime.Object, key client.ObjectKey, err error, live bool) {
	if r.record.Journal != nil {
		r.record.Journal.Note(ctx, journal.Read{Step: StepFrom(ctx), Object: r.object(obj, key), Live: live, Err: err})
	}
}

// begin prepares the note of a write, with the state of the object before it. Subresources that are
// no part of their object have none.
func (r *Client) begin(ctx context.Context, verb, sub string, obj client.Object) *Write {
	key := client.ObjectKeyFromObject(obj)
	w := &Write{Verb: verb, Subresource: sub, Object: r.object(obj, key), Owner: r.record.Owner, Own: isOwn(ctx)}
	if verb != "create" && IsPartOf(sub) {
		w.Before, w.Verified = r.before(ctx, w, reflect.TypeOf(obj), key)
	}
	return w
}

// before returns the object as it is before a write, nil if that is not known, and whether it was
// read from the API server: that is done only if a hot loop is suspected.
func (r *Client) before(ctx context.Context, w *Write, t reflect.Type, key client.ObjectKey) (before *Snapshot, verified bool) {
	c := r.record.root()
	c.mu.Lock()
	before, cached, absent := c.answers[w.Object], c.cached[t], c.absent[absentee{t, key}]
	own := c.Self != nil && t == reflect.TypeOf(c.Self) && key == client.ObjectKeyFromObject(c.Self)
	c.mu.Unlock()
	switch {
	case before != nil:
	case own:
		before = SnapshotOf(c.Self)
	case cached:
		w.Cached = t
		if before = (&Snapshot{Absent: true}); !absent {
			before = r.cachedSnapshot(ctx, t, key)
		}
	}
	suspected := false
	c.mu.Lock()
	if c.history != nil {
		before, suspected = c.history.Known(w.Object, before)
	}
	c.mu.Unlock()
	if c.APIReader == nil || !suspected {
		return before, false
	}
	if live := r.liveSnapshot(ctx, w.Object, key); live != nil {
		return live, true
	}
	return before, false
}

func (r *Client) cachedSnapshot(ctx context.Context, t reflect.Type, key client.ObjectKey) *Snapshot {
	obj := NewOf(t)
	err := r.Client.Get(ctx, key, obj, Sharing...)
	switch {
	case err == nil:
		return SnapshotOf(obj)
	case apierrors.IsNotFound(err):
		return &Snapshot{Absent: true}
	default:
		return nil
	}
}

// liveSnapshot asks the API server, and records that in the journal.
func (r *Client) liveSnapshot(ctx context.Context, object journal.Object, key client.ObjectKey) *Snapshot {
	mapping, err := r.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: object.Group, Kind: object.Kind})
	if err != nil {
		return nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.record.root().APIReader.Get(ctx, key, obj)
	r.read(ctx, obj, key, err, true)
	switch {
	case err == nil:
		return SnapshotOf(obj)
	case apierrors.IsNotFound(err):
		return &Snapshot{Absent: true}
	default:
		return nil
	}
}

// end notes a write of an object. Old is the version that the step had before it.
func (r *Client) end(ctx context.Context, w *Write, obj client.Object, old string, dry bool, err error) {
	w.Object = r.object(obj, client.ObjectKeyFromObject(obj)) // a created object may have received its name
	if err == nil {
		version := obj.GetResourceVersion()
		w.NoOp = dry || version != "" && (version == old || r.record.knows(w, version))
		if !w.NoOp && IsPartOf(w.Subresource) {
			w.After = snapshotOfAnswer(obj, w.kept)
		}
		if !dry {
			r.noteTarget(w, obj, version)
		}
	}
	if err == nil && !dry && w.Subresource == "" && obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		w.NoOp = false // it has released the object, which has no further version
	}
	r.record.wrote(ctx, w, err)
}

// noteTarget notes the answer to a write: the cache has yet to receive it. After a no-op, the
// reconcile depends on the object, which it need not have read.
func (r *Client) noteTarget(w *Write, obj client.Object, version string) {
	if !IsPartOf(w.Subresource) {
		return
	}
	if !w.NoOp {
		w.Input = r.record.noteChild(reflect.TypeOf(obj), client.ObjectKeyFromObject(obj), version)
		return
	}
	r.record.dependsOn(reflect.TypeOf(obj), client.ObjectKeyFromObject(obj), version)
}

func (r *Client) Status() client.SubResourceWriter { return r.SubResource("status") }

func (r *Client) SubResource(name string) client.SubResourceClient {
	return &subresource{r.Client.SubResource(name), r, name}
}
