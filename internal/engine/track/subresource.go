// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A subresource is the client of a subresource, which records what goes through it.
type subresource struct {
	client.SubResourceClient
	client *Client
	name   string
}

func (s *subresource) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	err := s.SubResourceClient.Get(ctx, obj, sub, opts...)
	s.client.record.noteUncached(ctx)
	s.client.noteUnwatched(ctx, obj, client.ObjectKeyFromObject(obj), err)
	s.client.read(ctx, obj, client.ObjectKeyFromObject(obj), err, true)
	return err
}

func (s *subresource) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	if err := s.client.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	w := (&Write{Verb: "create", Subresource: s.name, Object: s.client.object(obj, client.ObjectKeyFromObject(obj)), Owner: s.client.record.Owner}).by(o.FieldManager)
	err := s.SubResourceClient.Create(ctx, obj, sub, opts...)
	w.NoOp = len(o.DryRun) > 0
	s.client.record.wrote(ctx, w, err)
	return err
}

func (s *subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if saves, _ := s.client.record.saves(obj, s.name, nil); saves {
		return s.client.record.Save(ctx)
	}
	if err := s.client.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	w := s.client.begin(ctx, "update", s.name, obj).by(o.FieldManager)
	old := obj.GetResourceVersion()
	err := s.SubResourceClient.Update(ctx, obj, opts...)
	s.end(ctx, w, obj, o.SubResourceBody, old, len(o.DryRun) > 0, err)
	return err
}

func (s *subresource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if saves, err := s.client.record.saves(obj, s.name, patch); err != nil {
		return err
	} else if saves {
		return s.client.record.Save(ctx)
	}
	if err := s.client.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	from := obj
	if o.SubResourceBody != nil {
		from = o.SubResourceBody
	}
	frozen, sent, err := freeze(patch, from)
	if err != nil {
		return err
	}
	w := s.client.begin(ctx, verbOf(patch), s.name, obj).by(o.FieldManager)
	w.Sent, w.kept = sent, keepsAnswer(patch)
	old := obj.GetResourceVersion()
	err = s.SubResourceClient.Patch(ctx, obj, frozen, opts...)
	s.end(ctx, w, obj, o.SubResourceBody, old, len(o.DryRun) > 0, err)
	return err
}

// end notes a write of a subresource. The answer to one with a body of its own is in that body, and
// says nothing of the object.
func (s *subresource) end(ctx context.Context, w *Write, obj, body client.Object, old string, dry bool, err error) {
	if body == nil && IsPartOf(w.Subresource) {
		s.client.end(ctx, w, obj, old, dry, err)
		return
	}
	w.Before, w.NoOp = nil, dry
	s.client.record.wrote(ctx, w, err)
}

func (s *subresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if err := s.client.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	applied := s.client.beginApply(ctx, s.name, obj)
	applied.by(o.FieldManager)
	err := s.SubResourceClient.Apply(ctx, obj, opts...)
	s.client.endApply(ctx, applied, obj, len(o.DryRun) > 0, err)
	return err
}

var (
	_ client.Client            = (*Client)(nil)
	_ client.SubResourceClient = (*subresource)(nil)
)
