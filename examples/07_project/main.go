// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 07_project is an operator for Projects: groups of Namespaces with the same labels,
// members and quota. Its handlers come from packages that do not know each other, and share one
// cache and one queue for each kind.
//
// It needs a cluster with the definitions in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/07_project
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/operator"
)

var project = operator.Operator{
	Name:     "project.project.ctrlkit.dev",
	Types:    []func(*runtime.Scheme) error{v1.AddToScheme},
	Controls: []func(ctrl.Manager) error{control},
	Options:  func(options *ctrl.Options) { options.NewCache = handlers.NewCache },
}

func main() { project.Main() }
