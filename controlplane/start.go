// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// startLimit bounds a start whose context has no deadline.
const startLimit = 2 * time.Minute

// Start starts a control plane and returns when it is ready:
//
//   - The API server reports that it is ready.
//   - With a controller manager, the default namespace has its ServiceAccount.
//   - Nodes are ready and accept Pods.
//
// That takes a few seconds, and minutes if programs must be built first: the API server then serves
// before the others are built, and Start writes its address to the progress.
//
// The context bounds the start, not the life of the control plane: call [ControlPlane.Stop] to end
// it. If Start returns an error, all processes have ended; if one of them caused the error, it
// quotes the last lines of its log. On Windows Start returns an error that says what works instead.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	plane, err := startEarly(ctx, options, func(c *ControlPlane) {
		fmt.Fprintf(c.options.Progress, "the API server serves at %s, with KUBECONFIG=%s; the rest is still compiled\n", c.host, c.Kubeconfig())
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-plane.Ready():
		return plane, nil
	case <-plane.Done():
		err = plane.Err()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return nil, fmt.Errorf("starting a control plane: %w", errors.Join(err, plane.Stop()))
}

// StartEarly is [Start], but does not wait for programs that must be built first, other than etcd
// and kube-apiserver: it returns when the API server is ready and has the CRDs of the options, and
// builds the other programs and starts the parts meanwhile. [ControlPlane.Ready] reports when that
// is done, and [ControlPlane.Done] that it has failed. Stop ends it. If there is nothing to build,
// StartEarly returns when all parts are ready.
//
// Until then, what controllers do is not done: Pods are created and not scheduled, what is deleted
// may remain, aggregated ClusterRoles have no rules. Each namespace has its default ServiceAccount,
// without which the API server would refuse Pods.
func StartEarly(ctx context.Context, options Options) (*ControlPlane, error) {
	return startEarly(ctx, options, func(*ControlPlane) {})
}

// startEarly calls serving before it builds more programs, if there are any to build.
func startEarly(ctx context.Context, options Options, serving func(*ControlPlane)) (*ControlPlane, error) {
	if err := platformError(); err != nil {
		return nil, err
	}
	if options.LogDir != "" { // before a build, which takes minutes
		if err := ensureLogDirectory(options.LogDir); err != nil {
			return nil, fmt.Errorf("starting a control plane: %w", err)
		}
	}
	options.Parts = options.Parts.withNeeded()
	var rest func(context.Context) error
	if options.Assets == (Assets{}) {
		var err error
		if options.Assets, rest, err = findServers(ctx, options.Parts, options.Progress); err != nil {
			return nil, err
		}
	} else if err := options.Assets.check(options.Parts); err != nil {
		return nil, fmt.Errorf("starting a control plane: %w", err)
	}
	return startWith(ctx, options, serving, rest)
}

// startWith starts a control plane of known programs. If rest is not nil, it builds those of the
// parts.
func startWith(ctx context.Context, options Options, serving func(*ControlPlane), rest func(context.Context) error) (*ControlPlane, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	plane := &ControlPlane{options: options, ready: make(chan struct{}), done: make(chan struct{})}
	plane.stop = sync.OnceValue(plane.stopAll)
	if err := plane.start(ctx, serving, rest); err != nil {
		return nil, fmt.Errorf("starting a control plane: %w", errors.Join(err, plane.Stop()))
	}
	return plane, nil
}

// start starts the API server and then the parts, but leaves the parts to the background if rest is
// to build their programs.
func (c *ControlPlane) start(ctx context.Context, serving func(*ControlPlane), rest func(context.Context) error) error {
	limited, cancel := limitStart(ctx)
	defer cancel()
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.startAPIServer(limited); err != nil {
		return err
	}
	if len(c.options.CRDs) > 0 {
		if err := c.installCRDs(limited); err != nil {
			return fmt.Errorf("installing custom resource definitions: %w", err)
		}
	}
	if rest == nil {
		if err := c.startParts(limited, c.options.Parts); err != nil {
			return err
		}
		close(c.ready)
		return nil
	}
	var provided *accounts
	if c.options.Parts.Has(PartControllerManager) {
		var err error
		if provided, err = newAccounts(limited, c); err != nil {
			return err
		}
	}
	serving(c)
	completion{plane: c, accounts: provided, build: rest}.start(context.WithoutCancel(ctx))
	return nil
}

// A completion starts the parts of an early control plane, in goroutines that end with it.
type completion struct {
	plane    *ControlPlane
	accounts *accounts // to be kept until then; may be nil
	build    func(context.Context) error
}

func (c completion) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	group := &c.plane.completing
	group.Go(func() {
		select {
		case <-c.plane.done:
			cancel()
		case <-ctx.Done():
		}
	})
	if c.accounts != nil {
		group.Go(func() { c.accounts.keep(ctx) })
	}
	group.Go(func() {
		defer cancel()
		if err := c.run(ctx); err != nil {
			c.plane.fail(func() error { return err })
		}
	})
}

// run starts the scheduler after the Nodes: Pods may wait for it already, and as long as no Node is
// usable, it would warn of each.
func (c completion) run(ctx context.Context) error {
	if err := c.build(ctx); err != nil {
		return err
	}
	ctx, cancel := limitStart(ctx)
	defer cancel()
	parts := c.plane.options.Parts
	for _, some := range []Parts{parts &^ PartScheduler, parts & PartScheduler} {
		if err := c.plane.startParts(ctx, some); err != nil {
			return err
		}
	}
	close(c.plane.ready)
	return nil
}

// limitStart bounds a start, unless ctx has a deadline.
func limitStart(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready within %s", startLimit))
}
