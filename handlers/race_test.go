// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/handlers"
)

// A change that comes while an object is taken from the queue is not lost: the handler sees it.
func TestNoChangeIsLost(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		obj := newConfigMap("a", nil)
		w.create(obj)
		changed := sync.OnceFunc(func() { // after the first read, and before it returns
			obj.Labels = map[string]string{"changed": "true"}
			w.must(w.user.Update(w.ctx, obj))
			w.settle()
		})
		var err error
		w.mgr, err = ctrl.NewManager(w.server.Config(), ctrl.Options{
			NewCache: handlers.Wrap(func(config *rest.Config, options cache.Options) (cache.Cache, error) {
				c, err := cache.New(config, options)
				return afterGet{c, changed}, err
			}),
			Scheme: newScheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
			Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		})
		w.must(err)
		w.registry, err = handlers.New(w.mgr, handlers.Options{Name: "test"})
		w.must(err)
		w.register(handlers.Handler[*corev1.ConfigMap]{Name: "one", OnChange: func(_ context.Context, obj *corev1.ConfigMap) error {
			w.call("changed:" + obj.Labels["changed"])
			return nil
		}})
		w.start()
		w.settle()
		if calls := w.takeCalls(); !contains(calls, "changed:true") {
			t.Errorf("called %q, and not for the change", calls)
		}
	})
}

// afterGet is a cache that does something after it has read an object.
type afterGet struct {
	cache.Cache
	do func()
}

// Get implements [client.Reader].
func (c afterGet) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	err := c.Cache.Get(ctx, key, obj, options...)
	c.do()
	return err
}
