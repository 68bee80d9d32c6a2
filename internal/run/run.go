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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// Options say what is run and what is shown of it.
type Options struct {
	Package    string   // of the operator: a directory, a file in it or an import path
	Args       []string // for the operator
	Kubeconfig string   // of the cluster to use; empty for a control plane of one's own
	CRDs       []string // files and directories with custom resource definitions; nil to find them by convention
	Samples    []string // files and directories with objects to apply; nil to find them by convention
	NoSamples  bool     // apply none
	Namespace  string   // for samples that name none
	Watch      []string // further kinds for the top of the tree
	Logs       bool     // show the operator's log
	LogFile    string   // write the operator's log to this file

	For     time.Duration // end well after so long; 0 for no limit
	Until   []string      // end well when all these conditions hold
	Timeout time.Duration // end badly when the conditions do not hold after so long; 0 for no limit

	// Supervisor is the beginning of a command line that calls Supervise with what follows "--".
	Supervisor []string
	Out        io.Writer // for the objects
	Err        io.Writer // for everything else
}

// ErrOperatorEnded is returned by Run when the operator ended although nobody stopped it.
var ErrOperatorEnded = errors.New("the operator ended")

// ErrConditionsMissed is returned by Run when the conditions did not hold in time.
var ErrConditionsMissed = errors.New("the conditions do not hold")

// ErrWatchingInterrupted is returned by Run, together with the cause of the context's end, when
// that came after the set-up was done.
var ErrWatchingInterrupted = errors.New("watching was interrupted")

// Run runs an operator, with everything that it needs, and shows what becomes of its objects until
// one of the ends that the options name, an error, or the end of ctx, whose cause it then returns.
// Every process that it started has ended when it returns.
func Run(ctx context.Context, options Options) error {
	klog.SetLogger(logr.Discard()) // what matters is returned as an error or shown
	ctrllog.SetLogger(logr.Discard())
	r := &runner{Options: options, queue: newQueue()}
	r.useTerminals()
	return r.run(ctx)
}

// runner is one run.
type runner struct {
	Options
	steps *steps
	live  *screen // nil when standard output is no terminal
	queue *queue

	project     *Project
	crdFiles    []string
	definitions []*apiextensionsv1.CustomResourceDefinition
	manifests   []Manifest
	kinds       []Kind
	conditions  []*Condition

	cluster  *cluster
	plane    *controlplane.ControlPlane // nil when the cluster is somebody else's
	operator *operator
	program  string    // the operator's, as it was built
	logFile  *os.File  // nil when the log is not wanted in a file
	start    time.Time // when the operator was started
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
	if r.Kubeconfig != "" { // one that does not answer is noticed before the build, which may take minutes
		if err := r.connect(ctx); err != nil {
			return err
		}
	}
	program, err := r.build(ctx)
	if err != nil {
		return err
	}
	defer func() {
		switch stopped := r.stop(); {
		case stopped == nil:
		case errors.Is(err, ErrWatchingInterrupted): // that is no failure, and this one is
			err = stopped
		default:
			err = errors.Join(err, stopped)
		}
	}()
	if r.Kubeconfig == "" {
		if err := r.startControlPlane(ctx); err != nil {
			return err
		}
	}
	if err := r.install(ctx); err != nil {
		return err
	}

	watching, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if err := r.watch(watching, &running); err != nil {
		return err
	}
	if err := r.startOperator(program); err != nil {
		return err
	}
	if err := r.applySamples(ctx); err != nil {
		return err
	}
	return r.show(ctx)
}

// stop stops every process that was started.
func (r *runner) stop() error {
	if r.operator == nil && r.plane == nil {
		return nil
	}
	st := r.steps.begin("stopping", "the operator")
	defer st.quit()
	if r.operator != nil {
		r.operator.stop()
	}
	if r.logFile != nil {
		defer r.logFile.Close() // every line was written at once
	}
	if r.plane == nil {
		st.done("the operator has ended; the cluster keeps the objects")
		return nil
	}
	st.say("the control plane")
	if err := r.plane.Stop(); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	st.done("every process has ended")
	return nil
}
