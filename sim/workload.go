// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// A Workload is an operator and what is done to it. It is run many times, so everything in it is
// only read: Script and Operator are called once per run, and the objects are copied.
type Workload struct {
	// Name distinguishes the workloads of one test, in reports and in the line that runs a plan
	// again. Needed when a test has several.
	Name string

	// Scheme has the types of Objects and of what Script handles, and is the scheme of managers
	// that [Manager] makes. Without one it is client-go's.
	Scheme *runtime.Scheme

	// CRDs are files or directories with CustomResourceDefinitions as YAML or JSON, relative to the
	// directory of the test.
	CRDs []string

	// RBAC are files or directories with the Roles, ClusterRoles and bindings of the operator, relative
	// to the directory of the test: "../config/rbac". With them, the operator may do only what they
	// allow, and what it tries beyond that is a finding of the oracle allowed. Without bindings among
	// them, it has all their roles.
	RBAC []string

	// ServiceAccount is the one that the operator has with RBAC, as "namespace/name". It may be empty
	// if the bindings name only one.
	ServiceAccount string

	// Objects are there before the operator starts: namespaces, Secrets, whatever it needs.
	Objects []client.Object

	// Externals are the systems outside the cluster that the operator talks to through
	// [Process.External].
	Externals []External

	// Operator is what main does, without the flags: it runs until ctx is done. [Manager] makes one
	// of a function that sets up controllers. It is called once for each process, and again after
	// each crash, so it must not keep anything in package variables.
	Operator func(ctx context.Context, p *Process) error

	// Script is what users do. It runs beside the operator, and the run ends after it. With the
	// option [From] it may be nil.
	Script func(w *World)

	// Players play the controllers that do not run: package [player] has those of Deployments, Jobs,
	// Pods and other built-in kinds, and makes them for own kinds. Nil means [player.Defaults]. A set
	// is changed with its methods With and Without, and [player.None] is an empty one.
	Players player.Set

	// Quiet is how long, in virtual time, nothing may have been written until the operator counts
	// as idle. It must be longer than the operator's own polling intervals after which it acts.
	// Zero means a minute.
	Quiet time.Duration

	// Patience is how long, in virtual time, [World.Settle] waits until the operator is idle. Zero
	// means six hours.
	Patience time.Duration

	// Normalize is called with a copy of each object before worlds are compared, and may change it
	// or return false to leave it out: for what legitimately depends on when things happened. The
	// simulator itself takes out resource versions, uids, times, generated names, what the server
	// and other controllers allocate (such as the clusterIP of a Service), and what differs between
	// runs without faults.
	Normalize func(obj *Object) bool

	rules    judge.Rules          // what the options of [Run] declare
	recorded *recording.Recording // of the option From; nil without it
	course   *course              // in a simulation of transitions; nil in others
}

// An Object is one of a world, as it is compared with that of another world.
type Object struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string // with "*" for what the server has generated
	Content   map[string]any
}

const (
	defaultQuiet    = time.Minute
	defaultPatience = 6 * time.Hour
)

func (w *Workload) quiet() time.Duration {
	if w.Quiet > 0 {
		return w.Quiet
	}
	return defaultQuiet
}

func (w *Workload) patience() time.Duration {
	if w.Patience > 0 {
		return w.Patience
	}
	return defaultPatience
}

// Manager returns an operator that consists of one controller-runtime manager. setup adds the
// controllers to it, as main does. The manager has the options of [Process.ManagerOptions]; an
// operator that needs others calls ctrl.NewManager in a function of its own.
func Manager(setup func(mgr ctrl.Manager, p *Process) error) func(ctx context.Context, p *Process) error {
	return func(ctx context.Context, p *Process) error {
		mgr, err := ctrl.NewManager(p.Config(), p.ManagerOptions())
		if err != nil {
			return err
		}
		if err := setup(mgr, p); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}
