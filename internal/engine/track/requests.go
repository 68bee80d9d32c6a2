// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"encoding/json"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Create creates an object.
func (r *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := r.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.CreateOptions{}).ApplyOptions(opts)
	w := r.begin(ctx, "create", "", obj).by(o.FieldManager)
	err := r.Client.Create(ctx, obj, opts...)
	r.end(ctx, w, obj, "", len(o.DryRun) > 0, err)
	return err
}

// Update replaces an object. That of the request is saved instead.
func (r *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if saves, _ := r.record.saves(obj, "", nil); saves {
		return r.record.Save(ctx)
	}
	if err := r.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.UpdateOptions{}).ApplyOptions(opts)
	w := r.begin(ctx, "update", "", obj).by(o.FieldManager)
	old := obj.GetResourceVersion()
	err := r.Client.Update(ctx, obj, opts...)
	r.end(ctx, w, obj, old, len(o.DryRun) > 0, err)
	return err
}

// Patch changes an object. That of the request is saved instead, if the patch was made from it.
func (r *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if saves, err := r.record.saves(obj, "", patch); err != nil {
		return err
	} else if saves {
		return r.record.Save(ctx)
	}
	if err := r.record.MayWrite(ctx); err != nil {
		return err
	}
	frozen, sent, err := freeze(patch, obj)
	if err != nil {
		return err
	}
	o := (&client.PatchOptions{}).ApplyOptions(opts)
	w := r.begin(ctx, verbOf(patch), "", obj).by(o.FieldManager)
	w.Sent, w.kept = sent, keepsAnswer(patch)
	old := obj.GetResourceVersion()
	err = r.Client.Patch(ctx, obj, frozen, opts...)
	r.end(ctx, w, obj, old, len(o.DryRun) > 0, err)
	return err
}

// verbOf returns what the journal calls a patch: server-side apply is one, by its type.
func verbOf(patch client.Patch) string {
	if patch.Type() == types.ApplyYAMLPatchType || patch.Type() == types.ApplyCBORPatchType {
		return "apply"
	}
	return "patch"
}

// freeze makes the data of a patch once, because the answer of the API server changes the object
// that it is made from. It returns the paths that the patch changes.
func freeze(patch client.Patch, obj client.Object) (client.Patch, *Sent, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return nil, nil, err
	}
	find := func() []string { return fieldsOf(data) }
	switch p := patch.(type) {
	case contentPatch:
		find = func() []string { return Fields(p.content) }
	default:
		if patch.Type() == types.JSONPatchType {
			find = func() []string { return fieldsOfJSONPatch(data) }
		}
	}
	return client.RawPatch(patch.Type(), data), &Sent{find: find}, nil
}

// ContentPatch returns a merge patch, or one of server-side apply. The content must not change until
// it is sent, and the object that has the answer not until the reconcile ends: a [Client] need not
// decode the patch to know what it sends, and copies no answer.
func ContentPatch(kind types.PatchType, content map[string]any) (client.Patch, error) {
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return contentPatch{client.RawPatch(kind, body), content}, nil
}

type contentPatch struct {
	client.Patch
	content map[string]any
}

func keepsAnswer(patch client.Patch) bool {
	_, ok := patch.(contentPatch)
	return ok
}

// Delete deletes an object. One that does not exist or is being deleted already is not changed.
func (r *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := r.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	w := r.begin(ctx, "delete", "", obj)
	err := r.Client.Delete(ctx, obj, opts...)
	if apierrors.IsNotFound(err) {
		r.record.dependsOn(reflect.TypeOf(obj), client.ObjectKeyFromObject(obj), "")
		return err // nothing was there, and nothing was changed
	}
	version := obj.GetResourceVersion()
	if w.Before != nil {
		version = w.Before.Version
	}
	terminating := !obj.GetDeletionTimestamp().IsZero() || w.Before != nil && w.Before.Terminating
	if w.NoOp = len(o.DryRun) > 0 || terminating; w.NoOp && err == nil {
		r.record.dependsOn(reflect.TypeOf(obj), client.ObjectKeyFromObject(obj), version)
	}
	r.record.wrote(ctx, w, err)
	return err
}

// DeleteAllOf is noted as a write even if it matched nothing: its answer does not say.
func (r *Client) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if err := r.record.MayWrite(ctx); err != nil {
		return err
	}
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	w := &Write{Verb: "deletecollection", Object: r.object(obj, client.ObjectKeyFromObject(obj)), Owner: r.record.Owner}
	err := r.Client.DeleteAllOf(ctx, obj, opts...)
	w.NoOp = len(o.DryRun) > 0
	r.record.wrote(ctx, w, err)
	return err
}
