// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/step"
)

// complete makes an engine and its controller.
func complete[T client.Object](t *testing.T, mgr manager.Manager, name string, obj T) error {
	t.Helper()
	e, err := step.New(step.Options[T]{Name: name, Client: mgr.GetClient(), Controller: controller.Options{SkipNameValidation: new(true)}})
	must(t, err)
	return e.Complete(ctrl.NewControllerManagedBy(mgr).For(obj))
}

func newIdleManager(t *testing.T) manager.Manager {
	t.Helper()
	options := ctrl.Options{Scheme: newScheme()}
	options.Metrics.BindAddress = "0"
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, options)
	must(t, err)
	return mgr
}

func TestTwoEnginesOfOneKind(t *testing.T) {
	mgr := newIdleManager(t)
	must(t, complete(t, mgr, "first", &Thing{}))
	err := complete(t, mgr, "second", &Thing{})
	if err == nil || !strings.Contains(err.Error(), `"first"`) || !strings.Contains(err.Error(), `"second"`) {
		t.Errorf("got %v, want both named", err)
	}
	t.Run("another manager", func(t *testing.T) {
		must(t, complete(t, newIdleManager(t), "second", &Thing{}))
	})
	t.Run("a kind without conditions of ours", func(t *testing.T) {
		for _, name := range []string{"first", "second"} {
			must(t, complete(t, mgr, name, &corev1.ConfigMap{}))
		}
	})
	runtime.KeepAlive(mgr)
}
