// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/step"
)

// A ConfigMap that must be there.
func ExampleGetOrWait() {
	read := func(ctx context.Context, req *step.Request[*Thing]) error {
		settings, err := step.GetOrWait[*corev1.ConfigMap](ctx, req, client.ObjectKey{Name: "settings"})
		if err != nil {
			return err // a wait for "ConfigMap default/settings" if there is none
		}
		req.Object.Status.Size = len(settings.Data)
		return nil
	}

	empty := fake.NewClientBuilder().WithScheme(newScheme()).WithRESTMapper(newMapper()).Build()
	err := read(context.Background(), &step.Request[*Thing]{Object: newThing(), Client: empty})
	fmt.Println("waits for", ctrlkit.Waits(err)[0].For)
	// Output: waits for ConfigMap default/settings
}

// Things are reconciled when a Secret changes that they name.
func ExampleEngine_WatchNamed() {
	setUp := func(mgr ctrl.Manager, engine *step.Engine[*Thing]) error {
		b := ctrl.NewControllerManagedBy(mgr).For(&Thing{}).Owns(&corev1.ConfigMap{})
		return engine.Complete(engine.WatchNamed(b, &corev1.Secret{}, func(obj *Thing) []client.ObjectKey {
			return []client.ObjectKey{{Name: obj.Labels["secret"]}}
		}))
	}
	_ = setUp
}
