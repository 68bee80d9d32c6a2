// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command wrangler is the operator of package operators written with rancher's wrangler: its
// generic controllers, its handler for removal, and apply with an owner. It answers the questions
// of the program that measures. See package process.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/requests"
)

func main() {
	logrus.SetOutput(io.Discard)
	settings, err := process.ParseFlags()
	if err == nil {
		err = run(settings)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(settings process.Settings) error {
	transport := requests.NewTransport()
	config, err := settings.Config(transport)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin := start
	if settings.Handlers > 0 {
		begin = startHandlers
	}
	o, err := begin(ctx, config, settings)
	if err != nil {
		return err
	}
	return process.Serve(os.Stdin, os.Stdout, transport, o.reconciles)
}
