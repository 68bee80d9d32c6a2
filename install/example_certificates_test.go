// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/ctrlkit/ctrlkit/install"
	"github.com/ctrlkit/ctrlkit/step"
)

// What main.go has: the webhook server gets its certificates, and the replica is ready when the API
// server trusts it.
func ExampleNewRotator() {
	_ = func(config *rest.Config) error {
		certs, err := install.NewRotator(config, install.RotatorOptions{
			Service:     client.ObjectKey{Name: "shop-webhook"},
			Validating:  []string{"shop-validation"},
			Conversions: []string{"carts.shop.example.com"},
		})
		if err != nil {
			return err
		}
		mgr, err := ctrl.NewManager(config, ctrl.Options{WebhookServer: certs.Server(webhook.Options{})})
		if err != nil {
			return err
		}
		return mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
	}
}

// The permissions for config/rbac.
func ExampleRotator_Rules() {
	certs, err := install.NewRotator(&rest.Config{}, install.RotatorOptions{
		Service:    client.ObjectKey{Namespace: "shop-system", Name: "shop-webhook"},
		Validating: []string{"shop-validation"},
	})
	if err != nil {
		panic(err)
	}
	role, clusterRole := certs.Rules()
	fmt.Print("in a Role:\n", step.Markers(role), "in a ClusterRole:\n", step.Markers(clusterRole))
	// Output:
	// in a Role:
	// // +kubebuilder:rbac:groups="",resources=secrets,verbs=create
	// // +kubebuilder:rbac:groups="",resources=secrets,verbs=get;update,resourceNames=shop-webhook-certificates
	// in a ClusterRole:
	// // +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get;update,resourceNames=shop-validation
}
