// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

// What shows a process that knows nothing whether an object was claimed.
func TestClaimsAreWitnessed(t *testing.T) {
	claims := func(do step.Step[*Thing]) steps { return steps{do} }
	for name, tt := range map[string]struct {
		admitted bool // the finalizer is there before the operator is
		strip    func(obj *Thing)
		steps    func(do step.Step[*Thing]) steps
		had, was bool
	}{
		"claimed":                           {steps: claims, had: true, was: true},
		"claimed, the annotations are gone": {strip: func(obj *Thing) { obj.Annotations = nil }, steps: claims, had: true, was: true},
		"the finalizer is of an admission policy": {
			admitted: true, strip: func(obj *Thing) { obj.Annotations = nil }, steps: claims, had: true,
		},
		"a person has removed the finalizer": {strip: func(obj *Thing) { obj.Finalizers = nil }, steps: claims},
		"another step needs the finalizer": {steps: func(do step.Step[*Thing]) steps {
			return steps{cleaning("Other", passes, passes), do}
		}, had: true},
	} {
		runInCluster(t, name, func(t *testing.T, c *cluster) {
			key := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "a"}}
			edit := func(change func(obj *Thing)) {
				obj := &Thing{}
				c.must(c.user.Get(t.Context(), key.NamespacedName, obj))
				change(obj)
				c.must(c.user.Update(t.Context(), obj))
			}
			had, was := false, false
			reconcile := func() {
				do := claiming(cleaning("A", passes, passes), func(req *request) error {
					had, was = req.HasFinalizer(), req.WasClaimed()
					return claimID("one")(req)
				})
				e, err := step.New(step.Options[*Thing]{Name: "things", Client: c.as("things"), Finalizer: finalizer}, tt.steps(do)...)
				c.must(err)
				_, err = e.Reconcile(t.Context(), key)
				c.must(err)
			}
			if tt.admitted {
				edit(func(obj *Thing) { obj.Finalizers = []string{finalizer} })
			}
			reconcile()
			if was {
				t.Error("it was claimed before the first claim")
			}
			if tt.strip != nil {
				edit(tt.strip)
			}
			reconcile() // in another process
			same(t, "has the finalizer", tt.had, had)
			same(t, "was claimed", tt.was, was)
		})
	}
}
