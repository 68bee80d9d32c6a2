// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 03_rwexternal is an operator that reads one Secret and writes another.
//
// It needs a cluster with the definition in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/03_rwexternal
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/operator"
)

var rwExternal = operator.Operator{
	Name:     "rwexternal.demo.ctrlkit.dev",
	Types:    []func(*runtime.Scheme) error{v1.AddToScheme},
	Controls: []func(ctrl.Manager) error{control},
}

func main() { rwExternal.Main() }
