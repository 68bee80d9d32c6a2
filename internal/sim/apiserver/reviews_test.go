// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// controller-runtime's client finds the kinds of reviews by discovery.
func TestReviewByAClient(t *testing.T) {
	c, err := client.New(apiserver.New(apiserver.Options{}).Config(), client.Options{})
	must(t, err)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps"},
	}}
	if err := c.Create(t.Context(), review); err != nil || !review.Status.Allowed {
		t.Errorf("a review without a user: %v, %v", review, err)
	}
}
