// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/testkind"
)

// A Depot stands for a resource in a system that the simulator plays.
type (
	Depot     = testkind.Object[DepotSpec, DepotStatus]
	DepotList = testkind.List[DepotSpec, DepotStatus]
)

type DepotSpec struct {
	Size int32 `json:"size,omitempty"`
}

type DepotStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ID                 string             `json:"id,omitempty"` // for the reconciler written by hand
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

var depotScheme = testkind.Scheme(testkind.Of[DepotSpec, DepotStatus]("Depot"))

func depot(name string) *Depot {
	return &Depot{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: DepotSpec{Size: 1}}
}
