// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scheme returns the Go types of the built-in kinds. It is shared: do not change it.
func Scheme() *runtime.Scheme { return types() }

// Serves reports whether a resource is a built-in one.
func Serves(gvr schema.GroupVersionResource) bool {
	return slices.ContainsFunc(Resources(), func(r Resource) bool { return r.GVR == gvr })
}

// IsReview reports whether a resource can be created only, and is not stored: its objects are
// questions about permissions.
func IsReview(r Resource) bool { return isReview(r.GVR.Resource) }

func isReview(resource string) bool {
	switch resource {
	case "selfsubjectreviews", "tokenreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews":
		return true
	}
	return false
}
