// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the Go types of the API group batch.ctrlkit.dev, version v1: the CronJob of this example.
//
// The deep copies beside the types and the CustomResourceDefinition in ../../config/crd are written by
// controller-tools from the types and their markers:
//
//	go generate ./...
//
// +kubebuilder:object:generate=true
// +groupName=batch.ctrlkit.dev
package v1

// The embedded Job template keeps its metadata (its labels are part of a run) only if the definition says so. Field
// descriptions of that template alone would make the definition larger than the 256 KiB that kubectl apply can
// remember in an annotation: kubectl explain job.spec has them.

//go:generate go tool controller-gen object paths=.
//go:generate go tool controller-gen crd:generateEmbeddedObjectMeta=true,maxDescLen=0 paths=. output:crd:dir=../../config/crd/bases
