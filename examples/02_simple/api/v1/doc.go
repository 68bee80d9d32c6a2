// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the Go types of the API group demo.ctrlkit.dev, version v1: the Simple of this
// example.
//
// +kubebuilder:object:generate=true
// +groupName=demo.ctrlkit.dev
package v1

//go:generate go tool controller-gen object crd paths=. output:crd:dir=../../config/crd/bases
