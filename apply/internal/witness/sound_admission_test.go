// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// runAdmission runs the cases in which an admission policy changes a field of ours. The server in
// memory does not apply such policies.
func runAdmission(t *testing.T, s *server) {}

var _ = schema.GroupVersionResource{}
var _ = metav1.ObjectMeta{}
var _ = unstructured.Unstructured{}
