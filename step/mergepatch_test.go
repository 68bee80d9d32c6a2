// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// odd is an object as people write them: a status that may be missing, a field that JSON does not
// have, and one that is not exported.
type odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            *oddStatus `json:"status,omitempty"`
	Cache             string     `json:"-"`
	hidden            int
}

type oddStatus struct {
	Large    int64 `json:"large"`
	Untagged []string
	Meta     *metav1.Time `json:"meta,omitempty"`
}

func (o *odd) DeepCopyObject() runtime.Object { c := *o; return &c }

// inlined has fields of its own kind beside those of another one.
type inlined struct {
	appsv1.Deployment `json:",inline"`
}

func (o *inlined) DeepCopyObject() runtime.Object {
	return &inlined{*o.Deployment.DeepCopy()}
}

// The patch of the fields that differ is that of the whole objects.
func TestMergePatch(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Name: "web", ResourceVersion: "7", Finalizers: []string{"example.com/a"}, Labels: map[string]string{"a": "1", "b": "2"},
		}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "x"}}}}
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Up", Status: "True"}}
		change(d)
		return d
	}
	none := deployment(func(*appsv1.Deployment) {})
	data := func(value string) *corev1.ConfigMap { return &corev1.ConfigMap{Data: map[string]string{"a": value}} }
	for name, tt := range map[string]struct{ from, to client.Object }{
		"nothing":       {none, deployment(func(*appsv1.Deployment) {})},
		"a label":       {none, deployment(func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "1", "c": "3"} })},
		"no finalizers": {none, deployment(func(d *appsv1.Deployment) { d.Finalizers = nil })},
		"status and spec": {none, deployment(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Spec.Template.Spec.NodeName, d.Status.Replicas, d.Status.Conditions = nil, "y", 3, nil
		})},
		"a kind":                   {none, deployment(func(d *appsv1.Deployment) { d.Kind, d.Status.Replicas = "Deployment", 1 })},
		"a field that is a map":    {data("1"), data("2")},
		"the field is gone":        {data("1"), &corev1.ConfigMap{}},
		"a first status":           {&odd{}, &odd{Status: &oddStatus{Large: 1<<53 + 1, Untagged: []string{"x"}, Meta: ptr.To(metav1.Unix(1, 0))}}},
		"no status any more":       {&odd{Status: &oddStatus{}}, &odd{}},
		"what is not encoded":      {&odd{Cache: "a", hidden: 1}, &odd{Cache: "b", hidden: 2}},
		"a field that is inlined":  {&inlined{*none}, &inlined{*deployment(func(d *appsv1.Deployment) { d.Status.Replicas = 5 })}},
		"an object without a type": {&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"a": int64(1)}}}, &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"b": "x"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			whole, err := client.MergeFrom(tt.from).Data(tt.to)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			if err := utiljson.Unmarshal(whole, &want); err != nil {
				t.Fatal(err)
			}
			got, err := mergePatch(tt.from, tt.to)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("error %v (-whole +got):\n%s", err, diff)
			}
		})
	}
}
