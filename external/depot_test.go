// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// A Depot stands for a resource in a system that the simulator plays.
type Depot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DepotSpec   `json:"spec,omitempty"`
	Status DepotStatus `json:"status,omitempty"`
}

type DepotSpec struct {
	Size int32 `json:"size,omitempty"`
}

type DepotStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ID                 string             `json:"id,omitempty"` // for the reconciler written by hand
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type DepotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Depot `json:"items"`
}

func (d *Depot) DeepCopyObject() runtime.Object     { return clone(d) }
func (d *DepotList) DeepCopyObject() runtime.Object { return clone(d) }

// clone copies by JSON, which is slow and never wrong.
func clone[T any](from *T) *T {
	data, err := json.Marshal(from)
	to := new(T)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

func depotScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "external.example.com", Version: "v1"}
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	s.AddKnownTypes(gv, &Depot{}, &DepotList{})
	metav1.AddToGroupVersion(s, gv)
	return s
}

func depot(name string) *Depot {
	return &Depot{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: DepotSpec{Size: 1}}
}
