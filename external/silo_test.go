// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/testkind"
	"github.com/ctrlkit/ctrlkit/policy"
)

// A Silo is the object of the tests of single reconciles.
type Silo = testkind.Object[SiloSpec, SiloStatus]

type SiloSpec struct {
	Size   string `json:"size,omitempty"`
	Region string `json:"region,omitempty"` // the system chooses one
}

type SiloStatus struct {
	policy.RequestStatus `json:",inline"`
	ObservedGeneration   int64              `json:"observedGeneration,omitempty"`
	Conditions           []metav1.Condition `json:"conditions,omitempty"`
}

var (
	silos      = testkind.Of[SiloSpec, SiloStatus]("Silo")
	siloScheme = testkind.Scheme(silos)
)
