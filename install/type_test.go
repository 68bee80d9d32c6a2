// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/ctrlkit/ctrlkit/install"
)

// A Gadget has a field of each sort.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GadgetSpec   `json:"spec"`
	Status            GadgetStatus `json:"status,omitempty"`
}

func (g *Gadget) DeepCopyObject() runtime.Object { c := *g; return &c }

type GadgetStatus struct {
	Replicas   int32              `json:"replicas"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type Common struct {
	Name   string `json:"name"`
	Hidden int    `json:"size,omitempty"`
}

type GadgetSpec struct {
	Common   `json:",inline"`
	Size     string                       `json:"size"`
	Enabled  *bool                        `json:"enabled"`
	Replicas *int32                       `json:"replicas,omitempty"`
	Ratio    float64                      `json:"ratio,omitempty"`
	Count    uint16                       `json:"count,omitempty"`
	Data     []byte                       `json:"data,omitempty"`
	Names    []string                     `json:"names"`
	Labels   map[string]string            `json:"labels,omitempty"`
	Since    metav1.Time                  `json:"since,omitempty"`
	Micro    *metav1.MicroTime            `json:"micro,omitempty"`
	Every    metav1.Duration              `json:"every,omitempty"`
	Raw      time.Duration                `json:"raw,omitempty"`
	Port     intstr.IntOrString           `json:"port,omitempty"`
	Memory   resource.Quantity            `json:"memory,omitempty"`
	Limits   corev1.ResourceList          `json:"limits,omitempty"`
	Values   runtime.RawExtension         `json:"values,omitempty"`
	Any      apiextensionsv1.JSON         `json:"any,omitempty"`
	Raw2     json.RawMessage              `json:"raw2,omitempty"`
	Loose    map[string]any               `json:"loose,omitempty"`
	Template corev1.PodTemplateSpec       `json:"template,omitempty"`
	Tree     *Tree                        `json:"tree,omitempty"`
	Matrix   map[string][]map[string]int8 `json:"matrix,omitempty"`
	Quoted   int                          `json:"quoted,omitempty,string"`
	Ignored  chan int                     `json:"-"`
	hidden   chan int
}

type Tree struct {
	Value string `json:"value"`
	Left  *Tree  `json:"left,omitempty"`
}

var gadgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}

func newGadget() *Gadget {
	now := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	return &Gadget{
		TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Gadget"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec: GadgetSpec{
			Common: Common{Name: "x"}, Size: "big", Replicas: ptr.To[int32](2), Ratio: 1.5, Count: 7, Data: []byte("hello"), Labels: map[string]string{"a": "b"},
			Since: now, Micro: &metav1.MicroTime{Time: now.Time}, Every: metav1.Duration{Duration: time.Minute}, Raw: time.Second, Port: intstr.FromString("http"), Memory: resource.MustParse("1Gi"),
			Limits: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Values: runtime.RawExtension{Raw: []byte(`{"deep":{"er":[1,"a"]}}`)},
			Any: apiextensionsv1.JSON{Raw: []byte(`[1,{"a":null}]`)}, Raw2: json.RawMessage(`"text"`), Loose: map[string]any{"x": map[string]any{"y": true}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}}, LivenessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}},
				}}},
			}},
			Tree: &Tree{Value: "1", Left: &Tree{Value: "2", Left: &Tree{Value: "3"}}}, Matrix: map[string][]map[string]int8{"a": {{"b": 1}}}, Quoted: 3, hidden: nil,
		},
	}
}

// The API server accepts the schema of a Go type, and loses nothing of what Go writes.
func TestTypesRoundTrip(t *testing.T) {
	c := newCluster(t)
	scale := &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}
	definitions, err := install.FromTypes(install.Type{
		Object: &Gadget{}, Kind: gadgetKind, ShortNames: []string{"gg"}, Categories: []string{"all"}, Scale: scale,
		Columns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Size", Type: "string", JSONPath: ".spec.size"}},
		Adjust: func(schema *apiextensionsv1.JSONSchemaProps) {
			spec := schema.Properties["spec"]
			size := spec.Properties["size"]
			size.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"big"`)}, {Raw: []byte(`"small"`)}}
			spec.Properties["size"] = size
		},
	})
	must(t, err)
	c.mustInstall(1, install.Options{}, definitions...)
	data, err := json.Marshal(newGadget())
	must(t, err)
	want, got := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	must(t, utiljson.Unmarshal(data, &want.Object))
	got.Object = runtime.DeepCopyJSON(want.Object)
	must(t, c.client.Create(c.ctx, got))
	metadata := want.Object["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
	delete(metadata, "creationTimestamp") // which Go writes as null, and servers leave out
	if diff := cmp.Diff(want.Object["spec"], got.Object["spec"]); diff != "" {
		t.Errorf("the spec differs (-want +got):\n%s", diff)
	}
	wrong := got.DeepCopy()
	wrong.SetName("wrong")
	wrong.SetResourceVersion("")
	must(t, unstructured.SetNestedField(wrong.Object, "huge", "spec", "size"))
	if err := c.client.Create(c.ctx, wrong); err == nil || !strings.Contains(err.Error(), "spec.size") {
		t.Errorf("the adjusted schema accepts another size: %v", err)
	}
}

func TestSchemaOf(t *testing.T) {
	p, err := install.SchemaOf(reflect.TypeFor[Gadget]())
	must(t, err)
	spec := p.Properties["spec"]
	if diff := cmp.Diff([]string{"enabled", "name", "names", "size"}, spec.Required); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
	if got := spec.Properties["size"].Type; got != "string" {
		t.Errorf("size is of the embedded struct: %q", got)
	}
	if !spec.Properties["enabled"].Nullable || !spec.Properties["names"].Nullable || spec.Properties["size"].Nullable {
		t.Error("what Go writes as null may be null, and nothing else")
	}
	if diff := cmp.Diff([]string{"spec"}, p.Required); diff != "" {
		t.Errorf("required of the object (-want +got):\n%s", diff)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[struct{ C chan int }](), reflect.TypeFor[struct {
		M map[struct{ A int }]string `json:"m"`
	}]()} {
		if _, err := install.SchemaOf(of); err == nil || !strings.Contains(err.Error(), "JSON has no") {
			t.Errorf("%s: %v", of, err)
		}
	}
}

func TestTypesAreVersions(t *testing.T) {
	second := gadgetKind
	second.Version = "v1beta1"
	definitions, err := install.FromTypes(install.Type{Object: &Gadget{}, Kind: gadgetKind}, install.Type{Object: &Gadget{}, Kind: second})
	if err != nil || len(definitions) != 1 || len(definitions[0].Spec.Versions) != 2 || definitions[0].Spec.Versions[1].Storage {
		t.Errorf("%v: %v", definitions, err)
	}
	for _, types := range [][]install.Type{
		{{}}, {{Kind: gadgetKind}}, {{Object: &Gadget{}, Kind: gadgetKind}, {Object: &Gadget{}, Kind: gadgetKind}},
		{{Object: &Gadget{}, Kind: gadgetKind}, {Object: &Gadget{}, Kind: second, Scope: apiextensionsv1.ClusterScoped}},
	} {
		if _, err := install.FromTypes(types...); err == nil {
			t.Errorf("%v is accepted", types)
		}
	}
}
