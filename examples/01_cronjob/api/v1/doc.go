// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the Go types of the API group batch.ctrlkit.dev, version v1: the CronJob of this
// example.
//
// The deep copies beside the types and the CustomResourceDefinition in ../../config/crd are written
// by controller-tools from the types and their markers:
//
//	go generate ./...
//
// +kubebuilder:object:generate=true
// +groupName=batch.ctrlkit.dev
package v1

// The API server keeps the metadata of the embedded Job template (its labels) only with
// generateEmbeddedObjectMeta. maxDescLen omits the descriptions of fields: those of the template
// alone would exceed the 256 KiB that kubectl apply can store in an annotation.

//go:generate go tool controller-gen object crd:generateEmbeddedObjectMeta=true,maxDescLen=0 paths=. output:crd:dir=../../config/crd/bases
