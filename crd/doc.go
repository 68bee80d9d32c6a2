// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package crd installs and upgrades CustomResourceDefinitions, from files or from Go types, and
// waits until the API server serves them:
//
//	definitions, err := crd.Read(manifests, "crd") // an fs.FS, such as an embed.FS
//	...
//	installer, err := crd.New(config, crd.Options{Name: "site-operator", Revision: "1.4.0"})
//	...
//	err = installer.Install(ctx, definitions...)
//
// An upgrade removes no version in which objects are stored, replaces no newer definition, and
// writes nothing if nothing has changed. The objects themselves are left to others: to migrate them
// to another version is the task of the storage version migrator.
package crd
