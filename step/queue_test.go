// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// It is known which queue a manager of controller-runtime wants, and not which one another manager
// wants.
func TestPrioritizedBy(t *testing.T) {
	for name, want := range map[string]*bool{"nothing": nil, "yes": new(true), "no": new(false)} {
		t.Run(name, func(t *testing.T) {
			mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{Controller: config.Controller{UsePriorityQueue: want}})
			if err != nil {
				t.Fatal(err)
			}
			got, known := prioritizedBy(builder.ControllerManagedBy(mgr))
			if !known || (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("got %v, known %t, want %v", got, known, want)
			}
			if _, known := prioritizedBy(builder.ControllerManagedBy(struct{ manager.Manager }{mgr})); known {
				t.Error("it is known of a manager that is wrapped")
			}
		})
	}
}
