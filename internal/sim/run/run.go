// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Options say what to run and what to show.
type Options struct {
	Package    string     // of the operator: a directory, a file in it or an import path
	Args       []string   // for the operator
	On         Where      // the cluster to run on
	Kubeconfig Kubeconfig // of the cluster, for OnCluster
	CRDs       []string   // files and directories with definitions; nil to find them by convention
	Samples    []string   // files and directories with objects; nil to find them by convention
	NoSamples  bool       // apply no samples
	Namespace  string     // for samples that have none
	Watch      []string   // further kinds for the top of the tree
	RBAC       []string   // files and directories with roles and bindings; nil to find them by convention
	AsAccount  string     // run the operator as this ServiceAccount, "namespace/name" or OnlyAccount; empty as administrator
	Logs       bool       // show the operator's log
	LogFile    string     // write the operator's log to this file

	// The times begin when the operator and all parts of the cluster run.
	For     time.Duration // end successfully after this time; 0 for no limit
	Until   []string      // end successfully when all these conditions hold
	Timeout time.Duration // fail if the conditions do not hold after this time; 0 for no limit

	// Page serves a page about the operator until ctx is done, and returns its address. Endpoint is
	// of the operator its own, if it does. Page may be nil.
	Page func(ctx context.Context, config *rest.Config, endpoint string) (address string, err error)

	// Supervisor is the beginning of a command line that calls Supervise with the arguments after
	// "--".
	Supervisor []string
	Out        io.Writer // for the objects
	Err        io.Writer // for everything else
}

// ErrOperatorEnded is returned by Run if the operator ended by itself.
var ErrOperatorEnded = errors.New("the operator ended")

// ErrConditionsMissed is returned by Run if the conditions did not hold in time.
var ErrConditionsMissed = errors.New("the conditions do not hold")

// ErrWatchingInterrupted is returned by Run, together with the cause of the context's end, if the
// context ended after the set-up was done.
var ErrWatchingInterrupted = errors.New("watching was interrupted")

// Run runs an operator with all that it needs and shows the states of its objects. It returns
//
//   - nil, when Options.For has passed or all conditions of Options.Until hold,
//   - the cause of ctx, when ctx ends,
//   - any other error that ended the run.
//
// All processes that it started have ended when it returns.
func Run(ctx context.Context, options Options) error {
	klog.SetLogger(logr.Discard()) // errors are returned or shown
	ctrllog.SetLogger(logr.Discard())
	r := &runner{Options: options, queue: newQueue(), complete: closed()}
	r.useTerminals()
	return r.run(ctx)
}

// closed returns a closed channel.
func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// runner is one run.
type runner struct {
	Options
	steps *steps
	live  *screen // nil if standard output is not a terminal
	queue *queue

	project     *Project
	crdFiles    []string
	definitions []*apiextensionsv1.CustomResourceDefinition
	manifests   []Manifest
	kinds       []Kind
	conditions  []*Condition

	cluster    *cluster
	plane      plane           // nil if a cluster was given
	complete   <-chan struct{} // closed when all parts of the cluster run
	completing *step           // until then
	account    *account        // nil if the operator runs as administrator
	operator   *operator
	program    string    // path of the operator's program
	logFile    *os.File  // nil without --logs=FILE
	start      time.Time // when the operator was started

	socket           servedAt     // of the operator
	removeKubeconfig func() error // nil if none was made
}

func (r *runner) useTerminals() {
	colors := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	r.steps = &steps{out: r.Err, width: func() int { return 80 }}
	if file, ok := terminalOf(r.Err); ok && os.Getenv("TERM") != "dumb" {
		size := sizeOf(file)
		r.steps.terminal, r.steps.colors = true, colors
		r.steps.width = func() int { width, _ := size(); return width }
	}
	if file, ok := terminalOf(r.Out); ok && os.Getenv("TERM") != "dumb" {
		r.live = &screen{out: r.Out, size: sizeOf(file)}
	}
}

func (r *runner) run(ctx context.Context) (err error) {
	if err := r.plan(ctx); err != nil {
		return err
	}
	if r.On == OnCluster { // before the build, which may take minutes, in case the cluster does not answer
		if err := r.connect(ctx); err != nil {
			return err
		}
	}
	defer func() {
		switch stopped := errors.Join(r.stop(), r.account.closeAudit()); {
		case stopped == nil:
		case errors.Is(err, ErrWatchingInterrupted): // an interruption is not a failure, and this is one
			err = stopped
		default:
			err = errors.Join(err, stopped)
		}
	}()
	if err := r.buildAndStart(ctx); err != nil {
		return err
	}
	if err := r.install(ctx); err != nil {
		return err
	}
	if err := r.grant(ctx); err != nil {
		return err
	}

	watching, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if err := r.watch(watching, &running); err != nil {
		return err
	}
	if r.socket, err = newSocket(r.plane, r.steps); err != nil {
		return err
	}
	if r.Page != nil {
		address, err := r.Page(watching, r.cluster.config, r.socket.endpoint())
		if err != nil {
			return err
		}
		r.steps.remark("page", address)
	}
	if err := r.startOperator(); err != nil {
		return err
	}
	if err := r.applySamples(ctx); err != nil {
		return r.account.judge(err, r.definitions, r.steps)
	}
	return r.account.judge(r.show(ctx), r.definitions, r.steps)
}

// buildAndStart compiles the operator and starts the cluster of the run. It does both at the same time
// if the cluster is a control plane, which takes seconds to start and may have to be compiled, too:
// the first error ends the other. It does not wait for controllers that are still compiled.
func (r *runner) buildAndStart(ctx context.Context) error {
	if r.On == OnControlPlane {
		both, ctx := errgroup.WithContext(ctx)
		built := make(chan struct{})
		both.Go(func() error { defer close(built); return r.build(ctx) })
		both.Go(func() error {
			if err := r.startControlPlane(ctx); err != nil {
				return err
			}
			select {
			case <-built:
				return nil
			case <-r.plane.Done():
				return failure(r.plane)
			}
		})
		return both.Wait()
	}
	if err := r.build(ctx); err != nil {
		return err
	}
	if r.On == OnMemory {
		return r.startMemory()
	}
	return nil
}

// stop stops all processes that were started.
func (r *runner) stop() error {
	defer r.socket.remove()
	if r.operator == nil && r.plane == nil {
		return nil
	}
	if r.completing != nil {
		r.completing.quit()
	}
	st := r.steps.begin("stopping", "the operator")
	defer st.quit()
	if r.operator != nil {
		r.operator.stop()
	}
	if r.logFile != nil {
		defer r.logFile.Close() // lines are not buffered
	}
	if r.removeKubeconfig != nil {
		if err := r.removeKubeconfig(); err != nil {
			return fmt.Errorf("removing the kubeconfig of the operator: %w", err)
		}
	}
	if r.plane == nil {
		st.done("the operator has ended; its objects remain in the cluster")
		return nil
	}
	st.say("the cluster")
	if err := r.plane.Stop(); err != nil {
		return fmt.Errorf("stopping the cluster of the run: %w", err)
	}
	st.done("all processes have ended")
	return nil
}
