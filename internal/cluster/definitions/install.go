// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !js

package definitions

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

var resource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Install creates definitions, and replaces those that exist. It does not wait until the kinds are
// served.
func Install(ctx context.Context, cluster dynamic.Interface, definitions []*Definition) error {
	for _, d := range definitions {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return install(ctx, cluster.Resource(resource), d) })
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return nil
}

func install(ctx context.Context, objects dynamic.ResourceInterface, d *Definition) error {
	d = d.DeepCopy()
	d.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status") // its lists may not be null
	present, err := objects.Get(ctx, d.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = objects.Create(ctx, obj, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	obj.SetResourceVersion(present.GetResourceVersion())
	_, err = objects.Update(ctx, obj, metav1.UpdateOptions{})
	return err
}
