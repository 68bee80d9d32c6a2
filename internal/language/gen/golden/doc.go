// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden is an API, a namespaced kind and a cluster-scoped one, with the managers that are
// generated for it in the same package.
//
// Package gen tests that the generator still writes them; the tests of this package what they do,
// in memory and against a real API server.
//
// +kubebuilder:object:generate=true
// +groupName=shop.example.com
// +versionName=v1
//
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object paths=./...
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd paths=. output:crd:dir=testdata/crds
package golden
