// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
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

	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
)

// A Thing is the object that the tests reconcile.
type Thing = testkind.Object[ThingSpec, ThingStatus]

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

var thingVersion = testkind.Version

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
		s.AddKnownTypeWithName(thingVersion.WithKind("Thing"), &Thing{})
		s.AddKnownTypeWithName(thingVersion.WithKind("ThingList"), &testkind.List[ThingSpec, ThingStatus]{})
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
