// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Program 08_manifests applies manifests to a cluster without an object that owns them: as an
// installer, and as a loop that follows a directory.
//
//	08_manifests install   NAMESPACE/NAME DIRECTORY    until all is ready
//	08_manifests uninstall NAMESPACE/NAME
//	08_manifests follow    NAMESPACE DIRECTORY         each folder is a set
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 || (len(args) < 3) != (args[0] == "uninstall") {
		return errors.New("usage: install NAMESPACE/NAME DIRECTORY | uninstall NAMESPACE/NAME | follow NAMESPACE DIRECTORY")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	a := &apply.Applier{Client: c, FieldOwner: "manifests"}
	namespace, set, _ := strings.Cut(args[1], "/")
	name := client.ObjectKey{Namespace: namespace, Name: set}
	switch args[0] {
	case "install":
		return install(ctx, a, name, args[2], os.Stdout)
	case "uninstall":
		return uninstall(ctx, a, name, os.Stdout)
	case "follow":
		return follow(ctx, a, namespace, args[2], 10*time.Second, os.Stdout)
	}
	return fmt.Errorf("unknown command %q", args[0])
}
