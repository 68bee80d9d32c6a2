// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/internal/testkind"
)

// A Yard is referred to by Barns.
type Yard = testkind.Object[struct{}, testkind.Status]

// A Barn stands in a Yard.
type Barn = testkind.Object[BarnSpec, testkind.Status]

type BarnSpec struct {
	Yard      string            `json:"yard,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

var (
	yardKind = testkind.Of[struct{}, testkind.Status]("Yard")
	barnKind = testkind.Of[BarnSpec, testkind.Status]("Barn")
	scheme   = testkind.Scheme(yardKind, barnKind)
)

func yard(name string, labels ...string) *Yard {
	obj := &Yard{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for i := 0; i < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&obj.ObjectMeta, labels[i], labels[i+1])
	}
	return obj
}

func barn(name string, spec BarnSpec) *Barn {
	return &Barn{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}
