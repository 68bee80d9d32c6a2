// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden holds, in its directories, generated packages as they must look, with the APIs that they are for.
//
// That the generator still writes them is tested in package gen; that they compile, by go vet; and what they do, by the
// tests of this package, against a real API server.
//
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object paths=./...
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd paths=./apis/shop/... output:crd:dir=testdata/crds
package golden
