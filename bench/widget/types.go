// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	_ "embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Spec is the content of the three children.
type Spec struct {
	First  string `json:"first"`
	Second string `json:"second"`
	Third  string `json:"third"`
}

// Status is the observed state of the children.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Children           int64              `json:"children,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Finalizer is the finalizer of all operators.
const Finalizer = "bench.ctrlkit.dev/widget"

// Widget is an object with three children: a ConfigMap, a Secret and a Service.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty"`
}

// List is a list of Widgets.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

// DeepCopyObject returns a copy of w that shares nothing with it.
func (w *Widget) DeepCopyObject() runtime.Object {
	out := &Widget{}
	w.deepCopyInto(out)
	return out
}

func (w *Widget) deepCopyInto(out *Widget) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = nil
	for _, c := range w.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *c.DeepCopy())
	}
}

// DeepCopyObject returns a copy of l that shares nothing with it.
func (l *List) DeepCopyObject() runtime.Object {
	out := &List{TypeMeta: l.TypeMeta, Items: make([]Widget, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		l.Items[i].deepCopyInto(&out.Items[i])
	}
	return out
}

// Resource is the resource of Widgets.
var Resource = schema.GroupVersionResource{Group: "bench.ctrlkit.dev", Version: "v1", Resource: "widgets"}

// NewScheme returns a scheme with Widgets and the built-in kinds.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the types of Kubernetes: %w", err)
	}
	group := Resource.GroupVersion()
	scheme.AddKnownTypeWithName(group.WithKind("Widget"), &Widget{})
	scheme.AddKnownTypeWithName(group.WithKind("WidgetList"), &List{})
	metav1.AddToGroupVersion(scheme, group)
	return scheme, nil
}

//go:embed crd.yaml
var definition []byte

// Definition returns the definition of Widgets.
func Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, crd); err != nil {
		return nil, fmt.Errorf("reading the definition of Widgets: %w", err)
	}
	return crd, nil
}
