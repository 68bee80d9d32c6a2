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
func ExampleWatchNamed() {
	secretOf := func(obj *Thing) []client.ObjectKey { return []client.ObjectKey{{Name: obj.Labels["secret"]}} }
	readSecret := step.Step[*Thing]{
		Name: "ReadSecret",
		Do: func(ctx context.Context, req *step.Request[*Thing]) error {
			_, err := step.GetOrWait[*corev1.Secret](ctx, req, secretOf(req.Object)[0])
			return err // a wait, until the watch reports the Secret
		},
		Watches: func() []step.Watch { return []step.Watch{step.WatchNamed(&corev1.Secret{}, secretOf)} },
	}
	control := func(mgr ctrl.Manager) error {
		return step.Control(mgr, step.Options[*Thing]{Name: "thing"}, readSecret)
	}
	_ = control
}
