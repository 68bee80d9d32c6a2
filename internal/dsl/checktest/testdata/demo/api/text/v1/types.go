// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has a kind with a field of every sort that can or cannot be text.
package v1

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Color is a named string.
type Color string

// Point is text by its method.
type Point struct{ X, Y int }

// String returns both coordinates.
func (p Point) String() string { return fmt.Sprint(p.X, ",", p.Y) }

// Path is text only when one has a pointer to it.
type Path struct{ Points []Point }

// String returns nothing of interest.
func (p *Path) String() string { return "path" }

// Shared is embedded by a pointer.
type Shared struct {
	Owner string `json:"owner,omitempty"`
}

// TextSpec has the fields.
type TextSpec struct {
	*Shared  `json:",inline"`
	String   string             `json:"string"`
	Pointer  *string            `json:"pointer"`
	Twice    **string           `json:"twice"`
	Color    Color              `json:"color"`
	Int      int32              `json:"int"`
	Uint     *uint8             `json:"uint"`
	Bool     bool               `json:"bool"`
	Float    float64            `json:"float"`
	Point    Point              `json:"point"`
	Path     Path               `json:"path"`
	Time     metav1.Time        `json:"time"`
	Wait     metav1.Duration    `json:"wait"`
	Period   time.Duration      `json:"period"`
	Quantity resource.Quantity  `json:"quantity"`
	Port     intstr.IntOrString `json:"port"`
	Names    []string           `json:"names"`
	Tags     map[string]string  `json:"tags"`
	Any      any                `json:"any"`
	Hidden   string             `json:"-"`
	private  string             //nolint:unused // documents must not refer to it
}

// Text is a kind.
type Text struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TextSpec `json:"spec,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (t *Text) DeepCopyObject() runtime.Object { c := *t; return &c }

// TextList is a list of Texts.
type TextList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Text `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *TextList) DeepCopyObject() runtime.Object { c := *l; return &c }
