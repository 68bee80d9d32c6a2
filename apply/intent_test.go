// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/ctrlkit/ctrlkit/apply"
)

func unstructuredFrom(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// A Part is of a kind of an operator, with all that Go types may have.
type Part struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              PartSpec   `json:"spec"`
	Status            PartStatus `json:"status"` // without omitempty
}

type PartSpec struct {
	Common
	*More    `json:",inline"`
	Required Empty                      `json:"required"`
	Optional Empty                      `json:"optional,omitempty"`
	Zero     Empty                      `json:"zero,omitzero"`
	Size     int                        `json:"size"` // zero is a value
	Amount   resource.Quantity          `json:"amount"`
	Extra    resource.Quantity          `json:"extra,omitempty"`
	At       metav1.Time                `json:"at,omitempty"`
	Every    metav1.Duration            `json:"every,omitempty"`
	Raw      runtime.RawExtension       `json:"raw,omitempty"`
	Port     intstr.IntOrString         `json:"port,omitempty"`
	Nested   map[string]Layer           `json:"nested,omitempty"`
	Deep     map[string]map[string]Part `json:"-"`
	Lists    []map[string][]Layer       `json:"lists,omitempty"`
}

type Common struct {
	Note  string `json:"note,omitempty"`
	Inner Empty  `json:"inner,omitempty"`
}

type More struct {
	Other Empty `json:"other,omitempty"`
	Level int   `json:"level"`
}

type Empty struct {
	Text string `json:"text,omitempty"`
}

type Layer struct {
	Strategy Empty  `json:"strategy,omitempty"`
	Pointer  *Empty `json:"pointer,omitempty"`
	Kept     Empty  `json:"kept"`
}

type PartStatus struct {
	Phase string `json:"phase"`
}

func (p *Part) DeepCopyObject() runtime.Object { c := *p; return &c }

// What the author of an object has meant is claimed, and nothing else.
func TestIntent(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "x"}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}}
	for _, tt := range []struct {
		name   string
		object any
		want   string
	}{
		{"a Deployment has no strategy, resources, creationTimestamp and status", &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}},
			`{"metadata":{"name":"x"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","emptyDir":{}}]}}}}`},
		{"a selector of all Pods stays", &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}}},
		}}, `{"metadata":{"name":"x"},"spec":{"podSelector":{},"ingress":[{"from":[{"namespaceSelector":{}}]}]}}`},
		{"an empty rule stays", &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}},
			`{"metadata":{"name":"x"},"spec":{"podSelector":{},"ingress":[{}]}}`},
		{"a target port is left to its default", newService("x"), `{"metadata":{"name":"x"},"spec":{"selector":{"app":"x"},"ports":[{"port":80}]}}`},
		{"a named target port stays", &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}},
			`{"metadata":{"name":"x"},"spec":{"ports":[{"port":80,"targetPort":"http"}]}}`},
		{"a quantity of zero stays", &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")},
		}}}}}, `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"0"}}}]}}`},
		{"an emptyDir with a limit", &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}, Volumes: []corev1.Volume{{
			Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("1Gi"))}},
		}}}}, `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c"}],"volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Gi"}}]}}`},
		{"an empty Part", &Part{ObjectMeta: meta}, `{"metadata":{"name":"x"},"spec":{"required":{},"size":0,"amount":"0"}}`},
		{"a full Part", &Part{ObjectMeta: meta, Spec: PartSpec{
			Common: Common{Note: "n"}, More: &More{}, Extra: resource.MustParse("0"), At: metav1.Time{Time: time.Unix(0, 0)}, Every: metav1.Duration{Duration: time.Second},
			Raw: runtime.RawExtension{Raw: []byte(`{"a":{},"b":{"c":0}}`)}, Port: intstr.FromInt32(1),
			Nested: map[string]Layer{"a": {}, "b": {Pointer: &Empty{}}}, Lists: []map[string][]Layer{{"c": {{}, {Strategy: Empty{"t"}}}}},
		}}, `{"metadata":{"name":"x"},"spec":{"note":"n","level":0,"required":{},"size":0,"amount":"0","extra":"0","at":"1970-01-01T00:00:00Z","every":"1s",
			"raw":{"a":{},"b":{"c":0}},"port":1,"nested":{"a":{"kept":{}},"b":{"kept":{},"pointer":{}}},"lists":[{"c":[{"kept":{}},{"kept":{},"strategy":{"text":"t"}}]}]}}`},
		{"an apply configuration", appsv1ac.Deployment("x", "").WithSpec(appsv1ac.DeploymentSpec().WithReplicas(0).WithStrategy(appsv1ac.DeploymentStrategy())),
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":""},"spec":{"replicas":0,"strategy":{}}}`},
		{"null says nothing, and Go's types are those of JSON", unstructuredFrom(map[string]any{
			"kind": "Part", "metadata": map[string]any{"name": "x", "creationTimestamp": nil, "labels": map[string]string{"a": "b"}},
			"spec": map[string]any{"a": nil, "b": []any{map[string]any{"c": nil, "d": 1}}, "args": []string{"x"}, "empty": map[string]any{}}, "status": map[string]any{},
		}), `{"kind":"Part","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"b":[{"d":1}],"args":["x"],"empty":{}}}`},
		{"what an object has that was read", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "x", UID: "1", ResourceVersion: "2", Generation: 3, CreationTimestamp: metav1.Now(), GenerateName: "x-", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		}}, `{"metadata":{"name":"x"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, err := json.Marshal(tt.object)
			must(t, err)
			got, err := apply.ContentOf(tt.object)
			must(t, err)
			want := map[string]any{}
			must(t, json.Unmarshal([]byte(tt.want), &want))
			data, err := json.Marshal(got)
			must(t, err)
			plain := map[string]any{}
			must(t, json.Unmarshal(data, &plain))
			if diff := cmp.Diff(want, plain); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if after, err := json.Marshal(tt.object); err != nil || string(after) != string(before) {
				t.Errorf("it was changed to %s, %v", after, err)
			}
		})
	}
}

func TestIntentRefused(t *testing.T) {
	for _, tt := range []struct {
		object any
		want   string
	}{
		{nil, "it is no object"},
		{(*corev1.ConfigMap)(nil), "it is a nil *v1.ConfigMap"},
		{(*unstructured.Unstructured)(nil), "it is a nil *unstructured.Unstructured"},
		{(*appsv1ac.DeploymentApplyConfiguration)(nil), "it is a nil *v1.DeploymentApplyConfiguration"},
		{[]*corev1.ConfigMap{}, "it is no object"},
		{&appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 1}}, "it has a status"},
		{&Part{Status: PartStatus{Phase: "Ready"}}, "it has a status"},
		{unstructuredFrom(map[string]any{"status": map[string]any{"a": "b"}}), "it has a status"},
		{unstructuredFrom(map[string]any{"spec": func() {}}), "encoding it"},
		{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}, "it has a generateName"},
	} {
		if _, err := apply.ContentOf(tt.object); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%T: %v, want %q", tt.object, err, tt.want)
		}
	}
}
