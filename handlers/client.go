// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// A recordingClient records what handlers read and write, by their contexts. Without a journal it
// is the client that it is made of.
type recordingClient struct{ client.Client }

func (c recordingClient) of(ctx context.Context) client.Client {
	if record, ok := ctx.Value(recordKey{}).(*track.Record); ok {
		return track.NewClient(c.Client, record)
	}
	return c.Client
}

// Get implements [client.Reader].
func (c recordingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.of(ctx).Get(ctx, key, obj, opts...)
}

// List implements [client.Reader].
func (c recordingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.of(ctx).List(ctx, list, opts...)
}

// Create implements [client.Writer].
func (c recordingClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.of(ctx).Create(ctx, obj, opts...)
}

// Update implements [client.Writer].
func (c recordingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.of(ctx).Update(ctx, obj, opts...)
}

// Patch implements [client.Writer].
func (c recordingClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.of(ctx).Patch(ctx, obj, patch, opts...)
}

// Apply implements [client.Writer].
func (c recordingClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.of(ctx).Apply(ctx, obj, opts...)
}

// Delete implements [client.Writer].
func (c recordingClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.of(ctx).Delete(ctx, obj, opts...)
}

// DeleteAllOf implements [client.Writer].
func (c recordingClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.of(ctx).DeleteAllOf(ctx, obj, opts...)
}

// Status implements [client.StatusClient].
func (c recordingClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor].
func (c recordingClient) SubResource(name string) client.SubResourceClient {
	return recordingSubresource{c, name}
}

// A recordingSubresource is the client of a subresource.
type recordingSubresource struct {
	client recordingClient
	name   string
}

func (s recordingSubresource) of(ctx context.Context) client.SubResourceClient {
	return s.client.of(ctx).SubResource(s.name)
}

// Get implements [client.SubResourceReader].
func (s recordingSubresource) Get(ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceGetOption) error {
	return s.of(ctx).Get(ctx, obj, subresource, opts...)
}

// Create implements [client.SubResourceWriter].
func (s recordingSubresource) Create(ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption) error {
	return s.of(ctx).Create(ctx, obj, subresource, opts...)
}

// Update implements [client.SubResourceWriter].
func (s recordingSubresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.of(ctx).Update(ctx, obj, opts...)
}

// Patch implements [client.SubResourceWriter].
func (s recordingSubresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.of(ctx).Patch(ctx, obj, patch, opts...)
}

// Apply implements [client.SubResourceWriter].
func (s recordingSubresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return s.of(ctx).Apply(ctx, obj, opts...)
}
