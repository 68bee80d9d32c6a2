// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Thing is the object that the tests reconcile.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ThingSpec   `json:"spec,omitempty"`
	Status            ThingStatus `json:"status,omitempty"`
}

type ThingSpec struct {
	Size int `json:"size,omitempty"`
}

type ThingStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Size               int                `json:"size,omitempty"`
	Phase              string             `json:"phase"`
	Counters           map[string]int     `json:"counters,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (t *Thing) DeepCopyObject() runtime.Object {
	c := *t
	c.ObjectMeta = *t.ObjectMeta.DeepCopy()
	c.Status.Conditions = slices.Clone(t.Status.Conditions)
	if t.Status.Counters != nil {
		c.Status.Counters = make(map[string]int)
		for k, v := range t.Status.Counters {
			c.Status.Counters[k] = v
		}
	}
	return &c
}

// A ThingList is there because the fake client wants one.
type ThingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Thing `json:"items"`
}

func (l *ThingList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Thing))
	}
	return &c
}

var thingVersion = schema.GroupVersion{Group: "test.example.com", Version: "v1"}

// finalizer is what an engine of the name "things" takes by default.
const finalizer = "test.example.com/things"

// newScheme returns the scheme of a fake client, which is slow with many kinds, and allKinds that of
// the others.
var (
	newScheme = schemeWith(corev1.AddToScheme)
	allKinds  = schemeWith(clientgoscheme.AddToScheme)
)

func schemeWith(add func(*runtime.Scheme) error) func() *runtime.Scheme {
	return sync.OnceValue(func() *runtime.Scheme {
		s := runtime.NewScheme()
		s.AddKnownTypes(thingVersion, &Thing{}, &ThingList{})
		metav1.AddToGroupVersion(s, thingVersion)
		utilruntime.Must(add(s))
		return s
	})
}

var newMapper = sync.OnceValue(func() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{thingVersion, corev1.SchemeGroupVersion})
	m.Add(thingVersion.WithKind("Thing"), meta.RESTScopeNamespace)
	m.Add(thingVersion.WithKind("Hidden"), meta.RESTScopeNamespace)
	for _, kind := range []string{"ConfigMap", "Secret", "Service", "ServiceAccount"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return m
})

// thingRequest asks for the Thing that most tests reconcile.
var thingRequest = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "a"}}

func newThing(finalizers ...string) *Thing {
	return &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a", Generation: 1, Finalizers: finalizers}}
}

// deletedThing is one that is being deleted and has finalizers.
func deletedThing(finalizers ...string) *Thing {
	obj := newThing(finalizers...)
	now := metav1.Now().Rfc3339Copy()
	obj.DeletionTimestamp = &now
	return obj
}

var things = schema.GroupResource{Group: thingVersion.Group, Resource: "things"}
