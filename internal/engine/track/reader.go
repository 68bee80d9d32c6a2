// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Reader reads from the API server, and records what is read.
type Reader struct {
	client.Reader
	client *Client
}

// NewReader returns a reader that records what is read through r, in the record of c.
func NewReader(r client.Reader, c *Client) *Reader { return &Reader{r, c} }

// Get reads an object. That of the request stays as it is.
func (l *Reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	obj = l.client.record.target(key, obj)
	l.client.reading(obj, key)
	err := l.Reader.Get(ctx, key, obj, opts...)
	l.client.record.noteUncached(ctx)
	l.client.noteUnwatched(ctx, obj, key, err)
	l.client.read(ctx, obj, key, err, true)
	return err
}

// List reads objects.
func (l *Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := l.Reader.List(ctx, list, opts...)
	l.client.record.noteUncached(ctx)
	o := client.ListOptions{}
	key := client.ObjectKey{Namespace: o.ApplyOptions(opts).Namespace}
	l.client.noteUnwatched(ctx, list, key, err)
	l.client.read(ctx, list, key, err, true)
	return err
}
