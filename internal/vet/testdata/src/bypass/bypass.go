// Package bypass has steps that use other clients than that of their request.
package bypass

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

type settings struct {
	client client.Client
	live   client.Reader // reads from the API server
	remote client.Client // of another cluster
}

func newSettings(mgr ctrl.Manager, remote client.Client) settings {
	return settings{client: mgr.GetClient(), live: mgr.GetAPIReader(), remote: remote}
}

func (s settings) Do(ctx context.Context, req *step.Request[*corev1.Pod]) error {
	return s.client.Create(ctx, &corev1.Secret{}) // want `s.client is not the client of the request, so the engine neither records nor guards what goes through it: use req.Client`
}

func (s settings) Cleanup(ctx context.Context, req *step.Request[*corev1.Pod]) error {
	if err := s.client.Status().Update(ctx, req.Object); err != nil { // want `use req.Client`
		return err
	}
	return remove(ctx, s.client) // want `s.client is not the client of the request`
}

func remove(ctx context.Context, c client.Client) error { return c.Delete(ctx, &corev1.Secret{}) }

// embedding has the client of the manager, as a scaffold writes it.
type embedding struct {
	client.Client
}

func (e *embedding) Do(ctx context.Context, req *step.Request[*corev1.Pod]) error {
	if err := e.Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Secret{}); err != nil { // want `e is not the client of the request`
		return err
	}
	_ = helper{e.Client}                          // want `e.Client is not the client of the request`
	return e.Client.Create(ctx, &corev1.Secret{}) // want `e.Client is not the client of the request`
}

func (e *embedding) Post(ctx context.Context, _ *step.Request[*corev1.Pod]) error {
	return e.Create(ctx, &corev1.Secret{}) // want `give the \*step.Request of \*k8s.io/api/core/v1.Pod a name and use its Client`
}

type helper struct{ client client.Client }

func newStep(mgr ctrl.Manager) step.Step[*corev1.Pod] {
	return step.Step[*corev1.Pod]{Name: "Write", Do: func(ctx context.Context, req *step.Request[*corev1.Pod]) error {
		return mgr.GetClient().Create(ctx, &corev1.Secret{}) // want `mgr.GetClient\(\) is not the client of the request`
	}}
}

func (s settings) right(ctx context.Context, req *step.Request[*corev1.Pod]) error {
	c := req.Client
	if err := c.Create(ctx, &corev1.Secret{}); err != nil {
		return err
	}
	if err := s.live.Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Secret{}); err != nil {
		return err
	}
	if err := remove(ctx, req.Client); err != nil {
		return err
	}
	if err := s.client.Create(ctx, &corev1.Event{}); err != nil { //nolint:bypass // it is not part of the object
		return err
	}
	return s.remote.Create(ctx, &corev1.Secret{})
}

// withoutRequest has no other client.
func (s settings) withoutRequest(ctx context.Context) error {
	return s.client.Create(ctx, &corev1.Secret{})
}
