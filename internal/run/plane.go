// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// startControlPlane builds the control plane if necessary, and starts it with all parts. It
// installs the operator's definitions before the controllers start, so that the garbage collector
// knows them at once.
func (r *runner) startControlPlane(ctx context.Context) (err error) {
	// A build reports its own progress.
	assets, err := controlplane.FindAssets(ctx, controlplane.AllParts, controlplane.BuildOptions{Progress: r.Err})
	if err != nil {
		return interrupted(ctx, err)
	}
	flags, err := r.account.auditFlags()
	if err != nil {
		return err
	}
	st := r.steps.begin("control plane", "starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and a node")
	defer st.quit()
	r.plane, err = controlplane.Start(ctx, controlplane.Options{Parts: controlplane.AllParts, Assets: assets, CRDs: r.crdFiles, Flags: flags})
	if err != nil {
		return interrupted(ctx, err)
	}
	if r.cluster, err = newCluster(r.plane.Config()); err != nil {
		return err
	}
	version, err := r.cluster.version()
	if err != nil {
		return err
	}
	st.done(fmt.Sprintf("Kubernetes %s: API server, controllers, scheduler, a node", version))
	r.steps.remark("kubectl", "export KUBECONFIG="+r.plane.Kubeconfig())
	return nil
}

// planeBroke returns a channel that is closed when the control plane of this run has failed, or nil
// if there is none.
func (r *runner) planeBroke() <-chan struct{} {
	if r.plane == nil {
		return nil
	}
	return r.plane.Done()
}

// interrupted returns the cause of ctx if it has ended, and err otherwise.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
