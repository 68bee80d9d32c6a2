// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The mistakes of an operator that keeps a ControllerRevision for the image of each Widget, and its
// size in a ConfigMap that can't be changed, only replaced.
const (
	generatesRevisions Bug = "generates-revisions"
	deletesByName      Bug = "deletes-by-name"
)

func revisionMutants() []Mutant {
	m := mutantsOf(revisionWorkload)
	return []Mutant{
		m(generatesRevisions, "a revision has a generated name, and is created again while the cache does not have it yet", "LeaderWorkerSet: a ControllerRevision too many in 9 of 20 sets", oracle.SameWork),
		m(deletesByName, "a child is deleted by its name, although it has been replaced since the cache saw it", "JobSet: Jobs of a new attempt deleted by the names of the old one's", oracle.SameWork),
	}
}

// revisionWorkload is the life of a Widget with a revision and an immutable ConfigMap.
func revisionWorkload(bug Bug) sim.Workload {
	return sim.Workload{
		Name: "revisions", Scheme: scheme, CRDs: definitions,
		Operator: asManager(func(mgr ctrl.Manager, _ *sim.Process) error {
			r := &revisions{Client: mgr.GetClient(), live: mgr.GetAPIReader(), bug: bug}
			return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.ControllerRevision{}).Complete(r)
		}),
		Script: life(func(x *Widget) { x.Spec.Size, x.Spec.Image = 2, "nginx:2" }),
	}
}

// revisions is the operator.
type revisions struct {
	client.Client
	live client.Reader
	bug  Bug
}

func (r *revisions) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcileReady(ctx, r.Client, req, func(ctx context.Context, w *Widget) (metav1.Condition, error) {
		done, err := r.keep(ctx, w)
		if err != nil || !done {
			return metav1.Condition{Status: metav1.ConditionFalse, Reason: nameTaken, Message: "a name is taken, or a child is being replaced"}, err
		}
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready", Message: "everything is there"}, nil
	})
}

// keep makes the children what they should be, and reports whether they are.
func (r *revisions) keep(ctx context.Context, w *Widget) (done bool, err error) {
	revised, err := r.revise(ctx, w)
	if err != nil {
		return false, err
	}
	configured, err := r.configure(ctx, w)
	if err != nil || !configured || !revised {
		return false, err
	}
	return true, r.prune(ctx, w)
}

// data is what the revision of a Widget records.
func data(w *Widget) []byte {
	content, err := json.Marshal(map[string]string{"image": w.Spec.Image})
	if err != nil {
		panic(err) // a map of strings
	}
	return content
}

// revise creates the revision of the Widget unless it is there.
func (r *revisions) revise(ctx context.Context, w *Widget) (done bool, err error) {
	list, err := r.revisionsOf(ctx, w)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(list, func(revision appsv1.ControllerRevision) bool { return isRevision(w, &revision) }) {
		return true, nil
	}
	hash := fnv.New32a()
	_, _ = hash.Write(data(w)) //nolint:errcheck // writing to a hash never fails
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-" + strconv.FormatUint(uint64(hash.Sum32()), 16), Labels: map[string]string{"widget": w.Name}},
		Data:       runtime.RawExtension{Raw: data(w)}, Revision: 1,
	}
	if r.bug == generatesRevisions {
		revision.Name, revision.GenerateName = "", w.Name+"-"
	}
	return r.create(ctx, w, revision)
}

// isRevision reports whether a revision is that of the Widget as it is.
func isRevision(w *Widget, revision *appsv1.ControllerRevision) bool {
	return string(revision.Data.Raw) == string(data(w))
}

func (r *revisions) revisionsOf(ctx context.Context, w *Widget) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	err := r.List(ctx, list, client.InNamespace(w.Namespace))
	return slices.DeleteFunc(list.Items, func(revision appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(&revision, w) || revision.DeletionTimestamp != nil
	}), err
}

// create creates a child, if the Widget is really as the cache has it. Where its name is taken, or
// the cache does not have it yet, it is not done.
func (r *revisions) create(ctx context.Context, w *Widget, obj client.Object) (done bool, err error) {
	if now, err := current(ctx, r.live, w); err != nil || !now {
		return false, err
	}
	if err := ctrl.SetControllerReference(w, obj, r.Scheme()); err != nil {
		return false, err
	}
	err = r.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

// configure replaces the ConfigMap if the Widget has another size.
func (r *revisions) configure(ctx context.Context, w *Widget) (done bool, err error) {
	immutable := true
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Immutable: &immutable, Data: map[string]string{"size": strconv.Itoa(int(w.Spec.Size))},
	}
	current := &corev1.ConfigMap{}
	err = r.Get(ctx, client.ObjectKeyFromObject(config), current)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, w, config)
	case err != nil || !metav1.IsControlledBy(current, w):
		return false, err
	case maps.Equal(current.Data, config.Data):
		return true, nil
	}
	return false, r.remove(ctx, w, current)
}

// prune deletes the revisions that are no longer those of the Widget.
func (r *revisions) prune(ctx context.Context, w *Widget) error {
	list, err := r.revisionsOf(ctx, w)
	if err != nil {
		return err
	}
	for i := range list {
		if isRevision(w, &list[i]) {
			continue
		}
		if err := r.remove(ctx, w, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a child, if the Widget is really as the cache has it and the child is the one that
// the cache has.
func (r *revisions) remove(ctx context.Context, w *Widget, obj client.Object) error {
	if now, err := current(ctx, r.live, w); err != nil || !now {
		return err
	}
	if r.bug == deletesByName {
		return client.IgnoreNotFound(r.Delete(ctx, obj))
	}
	return deleteThis(ctx, r, obj)
}
