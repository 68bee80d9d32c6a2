// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// intercept records the writes of an operator, and passes its requests to the functions of the
// test.
func (o *operator) intercept() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if o.funcs.Get != nil {
				return o.funcs.Get(ctx, c, key, obj, opts...)
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if o.funcs.List != nil {
				return o.funcs.List(ctx, c, list, opts...)
			}
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if options := (&client.CreateOptions{}); len(options.ApplyOptions(opts).DryRun) > 0 {
				return c.Create(ctx, obj, opts...)
			}
			return o.write("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return o.write("delete", obj, func() error {
				if o.funcs.Delete != nil {
					return o.funcs.Delete(ctx, c, obj, opts...)
				}
				return c.Delete(ctx, obj, opts...)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if patch.Type() == types.ApplyYAMLPatchType {
				o.mu.Lock()
				o.validation = (&client.PatchOptions{}).ApplyOptions(opts).FieldValidation
				o.mu.Unlock()
				return o.write("apply", obj, func() error { return o.applyPatch(ctx, c, obj, patch, opts...) })
			}
			return o.write("patch", obj, func() error {
				if o.funcs.Patch != nil {
					return o.funcs.Patch(ctx, c, obj, patch, opts...)
				}
				return c.Patch(ctx, obj, patch, opts...)
			})
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
			if err != nil {
				return err
			}
			obj := &unstructured.Unstructured{Object: u}
			return o.write("apply", obj, func() error {
				if o.funcs.Apply != nil {
					return o.funcs.Apply(ctx, c, config, opts...)
				}
				return c.Apply(ctx, config, opts...)
			})
		},
	}
}

// applyPatch passes a server-side apply that is sent as a patch to the test, if it wants to have
// it.
func (o *operator) applyPatch(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if o.funcs.Apply == nil {
		return c.Patch(ctx, obj, patch, opts...)
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	sent := &unstructured.Unstructured{}
	if err := sent.UnmarshalJSON(data); err != nil {
		return err
	}
	set := (&client.PatchOptions{}).ApplyOptions(opts)
	options := &client.ApplyOptions{DryRun: set.DryRun, Force: set.Force, FieldManager: set.FieldManager}
	if err := o.funcs.Apply(ctx, c, client.ApplyConfigurationFromUnstructured(sent), options); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, obj)
}
