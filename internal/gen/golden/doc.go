// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden has generated packages in its directories, with the APIs that they are for.
//
// Package gen tests that the generator still writes them, go vet that they compile, and the tests
// of this package what they do, against a real API server.
//
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object paths=./...
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd paths=./apis/shop/... output:crd:dir=testdata/crds
package golden
