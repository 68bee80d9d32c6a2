// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 05_user is an operator that keeps users of MySQL and MariaDB servers, with their grants
// and passwords.
//
// It needs a cluster with the definitions in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/05_user
package main

import (
	"context"
	"errors"
	"flag"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/05_user/mysqlserver"
	"github.com/ctrlkit/ctrlkit/operator"
)

func main() { mySQL(dependencies{connect: connectMySQL, newPassword: newPassword}).Main() }

// mySQL is the operator, with what main or a test gives it. Main runs an embedded server beside it.
func mySQL(d dependencies) operator.Operator {
	address := ""
	return operator.Operator{
		Name:     "mysql.ctrlkit.dev",
		Types:    []func(*runtime.Scheme) error{v1.AddToScheme},
		Controls: []func(ctrl.Manager) error{func(mgr ctrl.Manager) error { return addControllers(mgr, d) }},
		Flags: func(flags *flag.FlagSet) {
			flags.StringVar(&address, "embedded-mysql", "127.0.0.1:0", "run a MySQL server in memory at this `address`, for Servers with embedded: true; empty for none")
		},
		Around: func(ctx context.Context, run func(context.Context) error) (err error) {
			if address == "" {
				return run(ctx)
			}
			server, err := mysqlserver.Start(address)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, server.Close()) }()
			d.embedded = server.Address
			return run(ctx)
		},
	}
}
