// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the Go types of the API group project.ctrlkit.dev, version v1: the Project and
// the Setting of this example.
//
// +kubebuilder:object:generate=true
// +groupName=project.ctrlkit.dev
package v1

//go:generate go tool controller-gen object crd paths=. output:crd:dir=../../config/crd/bases
