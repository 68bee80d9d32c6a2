// Package handled has handlers that read what nothing watches.
package handled

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/step"
)

type locator struct{ client client.Client }

func (l locator) locate(ctx context.Context, d *appsv1.Deployment) error {
	if err := l.client.Get(ctx, client.ObjectKey{Name: d.Namespace}, &corev1.Namespace{}); err != nil { // it is related
		return err
	}
	return l.client.Get(ctx, client.ObjectKey{Name: d.Name}, &corev1.Secret{}) // want `corev1.Secret is read here .* Related of a handler`
}

// Handlers returns the handlers of this package.
func Handlers(registry *handlers.Registry) []handlers.Entry {
	l, reader := locator{registry.Client()}, registry.Client()
	observe := func(ctx context.Context, _ *corev1.Node) error {
		return reader.List(ctx, &corev1.PodList{}) // want `corev1.Pod is read here`
	}
	return []handlers.Entry{
		handlers.Handler[*appsv1.Deployment]{
			Name: "location", OnChange: l.locate,
			Related: []step.Watch{step.WatchNamed(&corev1.Namespace{}, func(d *appsv1.Deployment) []client.ObjectKey {
				return []client.ObjectKey{{Name: d.Namespace}}
			})},
		},
		handlers.Status("pods", "Observed", observe),
	}
}
