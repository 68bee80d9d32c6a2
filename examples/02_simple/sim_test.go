// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
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
		Operator: func(ctx context.Context, p *sim.Process) error {
			mgr, err := simple.Manager(p.Config(), p.ManagerOptions())
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
		Script: func(w *sim.World) {
			simple := &v1.Simple{ObjectMeta: metav1.ObjectMeta{Name: "seven", Namespace: "default"}, Spec: v1.SimpleSpec{Dividend: 7, Divisor: 2}}
			w.Create(simple)
			w.Settle()
			sim.Update(w, simple, func(s *v1.Simple) { s.Spec.Divisor = 0 })
			w.Settle()
			sim.Update(w, simple, func(s *v1.Simple) { s.Spec.Divisor = 3 })
			w.Settle()
			w.Delete(simple)
			w.Settle()
		},
	}
}

func simScheme(t *testing.T) *runtime.Scheme { return exampletest.NewScheme(t, v1.AddToScheme) }
