// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"bytes"
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// A priced is a child whose check is measured.
type priced struct {
	name    string
	intent  map[string]any
	byHand  func() bool // compares typed objects
	managed []metav1.ManagedFieldsEntry
}

func pricedChildren(t testing.TB) []priced {
	s := memoryServer(t)
	var list []priced
	for _, p := range []struct {
		name, intent string
		typed        func() client.Object
		content      func(client.Object) any
	}{
		{"Deployment", deployment, func() client.Object { return &appsv1.Deployment{} }, func(o client.Object) any { return o.(*appsv1.Deployment).Spec }},
		{"Service", service, func() client.Object { return &corev1.Service{} }, func(o client.Object) any { return o.(*corev1.Service).Spec }},
		{"ConfigMap", configMap, func() client.Object { return &corev1.ConfigMap{} }, func(o client.Object) any { return o.(*corev1.ConfigMap).Data }},
	} {
		c := s.child(t, "priced", p.intent)
		live := c.apply()
		wanted, typed := p.typed(), p.typed()
		c.must(runtime.DefaultUnstructuredConverter.FromUnstructured(c.intent, wanted))
		c.must(runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, typed))
		if svc, ok := wanted.(*corev1.Service); ok {
			svc.Spec.Ports = typed.(*corev1.Service).Spec.Ports // or a target port of 0 would differ from its default
		}
		list = append(list, priced{p.name, c.intent, func() bool {
			return equality.Semantic.DeepDerivative(wanted.GetLabels(), typed.GetLabels()) &&
				equality.Semantic.DeepDerivative(wanted.GetOwnerReferences(), typed.GetOwnerReferences()) &&
				equality.Semantic.DeepDerivative(p.content(wanted), p.content(typed))
		}, live.GetManagedFields()})
	}
	return list
}

// The figures are those of docs/design/0011-unchanged-children-are-witnessed.md.
func BenchmarkWitness(b *testing.B) {
	for _, p := range pricedChildren(b) {
		for _, m := range []struct {
			name string
			run  func() bool
		}{
			{"Hash", func() bool { return witness.Hash(p.intent) != "" }},
			{"Covers", func() bool { return witness.Covers(p.managed, ours, p.intent) }},
			{"Marshal", func() bool { _, err := json.Marshal(p.intent); return err == nil }}, // instead of Hash
			{"FromJSON", func() bool { // instead of Covers, and this only reads the entry
				return (&fieldpath.Set{}).FromJSON(bytes.NewReader(p.managed[0].FieldsV1.GetRawBytes())) == nil
			}},
			{"Why", func() bool { _, found := witness.Why(p.managed, ours, p.intent); return !found }},
			{"DeepDerivative", p.byHand},
		} {
			b.Run(p.name+"/"+m.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if !m.run() {
						b.Fatal("not covered")
					}
				}
			})
		}
	}
}

// Covers allocates nothing, and Hash only its result.
func TestCost(t *testing.T) {
	rings.Test(t, "takes seconds")
	if raceDetector {
		t.Skip("the race detector makes pools drop what they hold")
	}
	for _, p := range pricedChildren(t) {
		if n := testing.AllocsPerRun(100, func() { witness.Covers(p.managed, ours, p.intent) }); n > 0 {
			t.Errorf("%s: Covers makes %v allocations", p.name, n)
		}
		if n := testing.AllocsPerRun(100, func() { witness.Hash(p.intent) }); n > 1 {
			t.Errorf("%s: Hash makes %v allocations", p.name, n)
		}
	}
}
