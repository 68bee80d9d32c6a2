// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// An operator in steps has no mistake in what the engine does for it: a resource outside the
// cluster, and a child, for each Widget.
func TestOperatorInStepsRaisesNoAlarm(t *testing.T) {
	rings.Test(t, "simulates")
	w := externalWorkload(Right)
	w.Name = "steps"
	w.Operator = sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
		engine, err := step.New(step.Options[*Widget]{
			Name: "widget", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("widget"),
			Observers:     []journal.Observer{journal.NewRing(journal.RingOptions{})},
			SkipUnchanged: true,
		}, step.Group("all", bucket{p.External("buckets")}.step(), step.Step[*Widget]{Name: "Child", Do: child}))
		if err != nil {
			return err
		}
		return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}))
	})
	w.Quiet = 4 * time.Minute // in some pairs two leaders fight about a condition; the engine reports that until it is sure that it is over
	sim.Run(t, w, sim.WithPairs(*pairs), sim.WithSample(20))
}

// bucket keeps the resource outside the cluster.
type bucket struct{ system *sim.ExternalClient }

func (b bucket) step() step.Step[*Widget] {
	return step.Step[*Widget]{Name: "Bucket", Do: b.do, Cleanup: b.cleanUp, Conditions: []condition.Declaration{{Type: "BucketReady"}}}
}

func (b bucket) do(ctx context.Context, req *step.Request[*Widget]) error {
	if err := b.credentials(ctx, req); err != nil {
		return err
	}
	if err := b.ensure(ctx, req); err != nil {
		return err
	}
	req.Conditions.MarkHealthy("BucketReady", "BucketReady", "")
	return ctrlkit.RequeueWithin(poll) // no watch reports changes outside
}

// credentials waits for the Secret without which nothing can be done outside.
func (bucket) credentials(ctx context.Context, req *step.Request[*Widget]) error {
	err := req.APIReader.Get(ctx, client.ObjectKey{Namespace: req.Object.Namespace, Name: req.Object.Spec.Secret}, &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return ctrlkit.Poll("Secret "+req.Object.Spec.Secret, poll)
	}
	return err
}

func (b bucket) ensure(ctx context.Context, req *step.Request[*Widget]) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	name := "bucket-" + string(req.Object.UID)
	wanted := map[string]string{"size": strconv.Itoa(int(req.Object.Spec.Size))}
	found, err := b.system.Get(ctx, name)
	if errors.Is(err, sim.ErrNotFound) {
		if err := req.EnsureFresh(ctx); err != nil {
			return err
		}
		found, err = b.system.Create(ctx, sim.Creation{Name: name, Tags: tags(req.Object), Spec: wanted, Owner: req.Object.UID})
	}
	if err != nil {
		return fmt.Errorf("bucket %q: %w", name, err)
	}
	req.Object.Status.ExternalID = found.ID
	if maps.Equal(found.Spec, wanted) {
		return nil
	}
	return b.system.Update(ctx, found.ID, wanted)
}

func (b bucket) cleanUp(ctx context.Context, req *step.Request[*Widget]) error {
	if err := b.credentials(ctx, req); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := b.system.Delete(ctx, "bucket-"+string(req.Object.UID))
	if err != nil && !errors.Is(err, sim.ErrNotFound) {
		return err
	}
	return nil
}

// child keeps a ConfigMap, which the garbage collector removes.
func child(ctx context.Context, req *step.Request[*Widget]) error {
	wanted := map[string]string{"size": strconv.Itoa(int(req.Object.Spec.Size))}
	obj := &corev1.ConfigMap{}
	err := req.Client.Get(ctx, client.ObjectKeyFromObject(req.Object), obj)
	switch {
	case apierrors.IsNotFound(err):
		obj = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Namespace, Name: req.Object.Name}, Data: wanted}
		if err := controllerutil.SetControllerReference(req.Object, obj, req.Client.Scheme()); err != nil {
			return err
		}
		return req.Client.Create(ctx, obj)
	case err != nil:
		return err
	case !metav1.IsControlledBy(obj, req.Object):
		wait := ctrlkit.Poll("ConfigMap of another owner with our name to go", poll)
		return wait
	case maps.Equal(obj.Data, wanted):
		return nil
	}
	obj.Data = wanted
	return req.Client.Update(ctx, obj)
}
