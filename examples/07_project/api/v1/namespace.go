// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ProjectLabel is the label by which a Namespace is in a Project. Its value is the name of the
// Project.
const ProjectLabel = "project.ctrlkit.dev/project"

// KeysOf returns the key of the Project of a Namespace, or none.
func KeysOf(ns *corev1.Namespace) []client.ObjectKey {
	if name := ns.Labels[ProjectLabel]; name != "" {
		return []client.ObjectKey{{Name: name}}
	}
	return nil
}

// ProjectOf returns the Project of a Namespace, or nil if it has none. Of one that the cache does
// not have it asks the API server: what follows from its absence is a deletion.
func ProjectOf(ctx context.Context, cache, live client.Reader, ns *corev1.Namespace) (*Project, error) {
	keys := KeysOf(ns)
	if len(keys) == 0 {
		return nil, nil
	}
	project := &Project{}
	err := cache.Get(ctx, keys[0], project)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, keys[0], project)
	}
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return project, nil
}
