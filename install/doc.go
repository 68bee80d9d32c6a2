// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package install is for what an operator brings to its cluster itself: definitions of its kinds,
// certificates of its webhooks, and the admission policy that adds its finalizer.
//
// # Definitions
//
// [New] makes an [Installer], which installs and upgrades CustomResourceDefinitions, from files or
// from Go types, and waits until the API server serves them:
//
//	definitions, err := install.Read(manifests, "crd") // an fs.FS, such as an embed.FS
//	...
//	installer, err := install.New(config, install.Options{Name: "site-operator", Revision: "1.4.0"})
//	...
//	err = installer.Install(ctx, definitions...)
//
// An upgrade removes no version in which objects are stored, replaces no newer definition, and
// writes nothing if nothing has changed. The objects themselves are left to others: to migrate them
// to another version is the task of the storage version migrator.
//
// # Certificates
//
// A [Rotator] has the webhook server of an operator serve with certificates that it makes and
// rotates itself, for clusters without cert-manager.
//
//	certs, err := install.NewRotator(config, install.RotatorOptions{
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
// It reads the Secret and the configurations by name, uncached. It needs no list and no watch of
// anything; see [Rotator.Rules]. It creates neither the Service nor the configurations. And it is
// no certificate manager: where you have cert-manager, mount what it issues. Objects that
// cert-manager's annotations claim are left alone.
//
// # The finalizer
//
// [FinalizerPolicy] makes an admission policy, for the API server to evaluate, that adds a finalizer
// when an object is created:
//
//	backups := v1.GroupVersion.WithResource("backups")
//	policy, binding, err := install.FinalizerPolicy(backups, "example.com/backup")
//
// It needs no webhook, and is only built here. Install it with the operator's other manifests, which
// "ctrlkit generate finalizer-policy" writes.
package install
