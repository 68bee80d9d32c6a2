// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the API of the demo: the CronJob of the well-known tutorial, reduced to what
// documents refer to.
//
// +kubebuilder:object:generate=true
// +groupName=demo.example.com
package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "demo.example.com", Version: "v1"}
