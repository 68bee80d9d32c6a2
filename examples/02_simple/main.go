// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 02_simple is an operator that divides the two numbers in the spec of an object, and
// reports in a condition when it cannot.
//
// It needs a cluster with the definition in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/02_simple
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
	"github.com/ctrlkit/ctrlkit/operator"
)

var simple = operator.Operator{
	Name:     "simple.demo.ctrlkit.dev",
	Types:    []func(*runtime.Scheme) error{v1.AddToScheme},
	Controls: []func(ctrl.Manager) error{control},
}

func main() { simple.Main() }
