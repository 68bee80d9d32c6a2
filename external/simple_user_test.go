// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/policy"
)

// A User is the object that the tests reconcile: a user of a database.
type User = testkind.Object[UserSpec, UserStatus]

type UserSpec struct {
	Name   string `json:"name,omitempty"`
	Server string `json:"server,omitempty"` // the ConfigMap of the server, if it has one
}

type UserStatus struct {
	policy.RequestStatus `json:",inline"`
	Observed             string             `json:"observed,omitempty"`
	ObservedGeneration   int64              `json:"observedGeneration,omitempty"`
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
}

// A Server is what Users wait for. Its definition comes after the operator has started.
type Server = testkind.Object[struct{}, struct{}]

var (
	userKind   = testkind.Of[UserSpec, UserStatus]("User")
	serverKind = testkind.Of[struct{}, struct{}]("Server")
	scheme     = testkind.Scheme(userKind, serverKind)
)

const (
	// finalizer is what an engine of the name "users" puts on a User.
	finalizer = "test.example.com/users"
	// claimed is the annotation that Claim writes.
	claimed = "test.example.com/login"
)

// user returns one that is called "namespace/name".
func user(namespace, name string) *User {
	return &User{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: UserSpec{Name: "app"}}
}
