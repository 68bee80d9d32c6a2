// Package guide is the project of docs/simulator.md: an operator as kubebuilder's users write it, which knows nothing of ctrlkit.
package guide

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Memcached is a number of memcached servers.
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemcachedSpec   `json:"spec,omitempty"`
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedSpec is what is wanted.
type MemcachedSpec struct {
	Size int32 `json:"size,omitempty"`
}

// MemcachedStatus is what there is.
type MemcachedStatus struct {
	Ready bool `json:"ready,omitempty"`
}

// MemcachedList is a list of Memcacheds.
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Memcached `json:"items"`
}

// DeepCopyObject copies the Memcached.
func (m *Memcached) DeepCopyObject() runtime.Object {
	out := *m
	out.ObjectMeta = *m.ObjectMeta.DeepCopy()
	return &out
}

// DeepCopyObject copies the list.
func (l *MemcachedList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = append([]Memcached(nil), l.Items...)
	return &out
}

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	gv := schema.GroupVersion{Group: "cache.example.com", Version: "v1"}
	s.AddKnownTypes(gv, &Memcached{}, &MemcachedList{})
	metav1.AddToGroupVersion(s, gv)
	return s
}
