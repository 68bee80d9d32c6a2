// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 04_website is an operator that serves websites, and keeps a DNS record for each.
//
// It needs a cluster with the definition in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/04_website
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/operator"
)

func main() { website(newMemoryDNS()).Main() } // a real one would be a client of your provider

// website is the operator, with the DNS that main or a test gives it.
func website(dns DNS) operator.Operator {
	return operator.Operator{
		Name:     "website.web.ctrlkit.dev",
		Types:    []func(*runtime.Scheme) error{v1.AddToScheme},
		Controls: []func(ctrl.Manager) error{control(dns)},
	}
}
