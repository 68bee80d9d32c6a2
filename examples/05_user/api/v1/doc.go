// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the Go types of the API group mysql.ctrlkit.dev, version v1: the Server and the
// User of this example.
//
// +kubebuilder:object:generate=true
// +groupName=mysql.ctrlkit.dev
package v1

//go:generate go tool controller-gen object crd paths=. output:crd:dir=../../config/crd/bases
