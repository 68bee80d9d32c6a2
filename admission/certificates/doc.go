// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package certificates has the webhook server of an operator serve with certificates that it makes
// and rotates itself, for clusters without cert-manager.
//
//	certs, err := certificates.New(config, certificates.Options{
//		Service:    client.ObjectKey{Name: "shop-webhook"},
//		Validating: []string{"shop-validation"},
//	})
//	...
//	mgr, err := ctrl.NewManager(config, ctrl.Options{WebhookServer: certs.Server(webhook.Options{})})
//	...
//	err = mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
//
// An authority (a CA) and a serving certificate are kept in a Secret that all replicas share, and
// the authority is written as the caBundle of the webhooks. Both are replaced after two thirds of
// their life, so that the API server trusts what each replica serves at any time:
//
//   - A new authority is first stored and added to each caBundle, beside the old one. The serving
//     certificate stays signed by the old one.
//   - When every webhook has had both for an interval, the new authority signs. Other replicas serve
//     the new certificate when they have seen the same.
//   - The old authority leaves the caBundle when it has expired, and with it all that it has signed.
//
// The package reads the Secret and the configurations by name, uncached. It needs no list and no
// watch of anything; see [Rotator.Rules]. It creates neither the Service nor the configurations.
//
// It is no certificate manager: where you have cert-manager, mount what it issues, and leave this
// package out. What cert-manager's annotations claim is left alone.
package certificates
