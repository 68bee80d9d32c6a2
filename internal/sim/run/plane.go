// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// Where says on which cluster an operator runs.
type Where string

// The clusters to run on.
const (
	OnCluster      Where = "cluster"      // one that is there, which Options.Kubeconfig names
	OnControlPlane Where = "controlplane" // a real control plane, started for the run
	OnMemory       Where = "memory"       // the API server in memory, started for the run
)

// limitsInMemory is what a person must know who believes what a run in memory shows.
const limitsInMemory = "no container runs, no webhook is called, RBAC is not enforced; https://github.com/ctrlkit/ctrlkit/blob/main/docs/run.md#in-memory lists what else memory leaves out"

// plane is a cluster that was started for the run, and is stopped with it.
type plane interface {
	Config() *rest.Config
	Kubeconfig() string    // a file for the operator and for kubectl
	Done() <-chan struct{} // closed when it has failed
	Err() error            // why it has failed
	Stop() error
}

var (
	_ plane = (*controlplane.ControlPlane)(nil)
	_ plane = (*memory.Cluster)(nil)
)

// startMemory starts a cluster in memory.
func (r *runner) startMemory() error {
	st := r.steps.begin("memory", "starting an API server in memory")
	defer st.quit()
	cluster, err := memory.Start(memory.Options{})
	if err != nil {
		return err
	}
	r.plane = cluster
	if r.cluster, err = newCluster(cluster.Config()); err != nil {
		return err
	}
	st.done("an API server in this process, and players for Jobs, Deployments, ... and their Pods")
	r.steps.remark("limits", limitsInMemory)
	r.steps.remark("kubectl", "export KUBECONFIG="+r.plane.Kubeconfig())
	return nil
}

// startControlPlane builds the control plane if necessary, and starts it with all parts. It
// installs the operator's definitions before the controllers start, so that the garbage collector
// knows them at once. If controllers are still to be compiled, it returns when the API server
// serves, and its step remains until they run.
func (r *runner) startControlPlane(ctx context.Context) error {
	flags, err := r.account.auditFlags()
	if err != nil {
		return err
	}
	st := r.steps.begin("control plane", "looking for its programs")
	started, err := controlplane.StartEarly(ctx, controlplane.Options{Parts: controlplane.AllParts, CRDs: r.crdFiles, Flags: flags, Progress: st})
	if err != nil {
		st.quit()
		return interrupted(ctx, err)
	}
	r.plane, r.complete, r.completing = started, started.Ready(), st
	if r.cluster, err = newCluster(started.Config()); err != nil {
		return err
	}
	version, err := r.cluster.version()
	if err != nil {
		return err
	}
	all := fmt.Sprintf("Kubernetes %s: API server, controllers, scheduler, a node", version)
	select {
	case <-started.Ready():
		st.done(all)
	default:
		r.steps.remark("API server", fmt.Sprintf("Kubernetes %s serves; controllers, scheduler and a node follow when they are compiled", version))
		go func() {
			select {
			case <-started.Ready():
				st.done(all)
			case <-started.Done(): // stopped or failed, which others report
			}
		}()
	}
	r.steps.remark("kubectl", "export KUBECONFIG="+r.plane.Kubeconfig())
	return nil
}

// failed returns a channel that is closed when the cluster of a run has failed, or nil if there is
// none.
func failed(p plane) <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.Done()
}

// failure returns the error of a run whose cluster has failed.
func failure(p plane) error { return fmt.Errorf("the cluster of the run failed: %w", p.Err()) }

// interrupted returns the cause of ctx if it has ended, and err otherwise.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
