// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The operator ends in the same state whatever goes wrong.
func TestSurvivesEverything(t *testing.T) {
	exampletest.Simulate(t, simWorkload(t))
}

// A user may change each field, and change it back, whatever goes wrong after that.
func TestTransitions(t *testing.T) {
	exampletest.Simulate(t, simWorkload(t), sim.WithTransitions(""), sim.WithFaults(3))
}

func simWorkload(t *testing.T) sim.Workload {
	return sim.Workload{
		Scheme: simScheme(t), CRDs: []string{"config/crd/bases"},
		Objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "results"}}},
		Operator: func(ctx context.Context, p *sim.Process) error {
			mgr, err := rwExternal.Manager(p.Config(), p.ManagerOptions())
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
		Script: func(w *sim.World) {
			input := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "numbers", Namespace: "default"}, Data: map[string][]byte{
				"dividend": []byte("7"), "divisor": []byte("2"),
			}}
			external := &v1.RWExternal{ObjectMeta: metav1.ObjectMeta{Name: "divide", Namespace: "default"}, Spec: v1.RWExternalSpec{
				InputSecret: "numbers", OutputSecret: v1.SecretReference{Namespace: "results", Name: "quotient"},
			}}
			w.Create(external) // it waits for its input
			w.Settle()
			w.Create(input)
			w.Settle()
			sim.Update(w, input, func(s *corev1.Secret) { s.Data["divisor"] = []byte("3") })
			w.Settle()
			w.Delete(external)
			w.Settle()
		},
	}
}

func simScheme(t *testing.T) *runtime.Scheme { return exampletest.NewScheme(t, v1.AddToScheme) }
