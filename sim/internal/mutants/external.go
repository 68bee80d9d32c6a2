// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The mistakes of an operator that keeps a resource outside the cluster for each Widget.
const (
	effectBeforeFinalizer Bug = "effect-before-finalizer"
	finalizerGoesFirst    Bug = "finalizer-goes-first"
	noFinalizer           Bug = "no-finalizer"
	notFoundIsError       Bug = "not-found-is-error"
	existsIsError         Bug = "exists-is-error"
	ignoresDrift          Bug = "ignores-drift"
	silentWithoutSecret   Bug = "silent-without-credentials"
	throttleIsTerminal    Bug = "throttled-call-is-terminal"
	panicsOnError         Bug = "panics-on-error"
	stuckWithoutSecret    Bug = "skips-cleanup-without-credentials"
	staleCreate           Bug = "creates-by-stale-cache"
	swallowsCallErrors    Bug = "swallows-call-errors"
	silentFailure         Bug = "silent-failure"

	noToken       Bug = "no-token"
	randomToken   Bug = "token-of-the-process"
	searchesFirst Bug = "searches-instead-of-token"
)

func externalMutants() []Mutant {
	m := mutantsOf(externalWorkload)
	return []Mutant{
		m(effectBeforeFinalizer, "the resource is created before the finalizer is there", "leaks of cloud resources: crossplane providers before the managed reconciler", oracle.FinalizerFirst, oracle.NoLeak, oracle.SameEnd),
		m(finalizerGoesFirst, "the finalizer is removed before the resource is deleted", "leaks when the operator restarts during deletion", oracle.NoLeak, oracle.SameEnd),
		m(noFinalizer, "deletion is only seen by an event that may be missed", "Sieve (OSDI 2022): missed deletions", oracle.FinalizerFirst, oracle.NoLeak, oracle.SameEnd),
		m(notFoundIsError, "a resource that is gone already can't be deleted, for ever", "objects stuck in deletion in many providers", oracle.SameEnd, oracle.BecomesIdle),
		m(existsIsError, "a resource that was created before a crash makes creation fail for ever", "objects that never become ready after a lost answer", oracle.SameEnd, oracle.SaysWhy),
		m(ignoresDrift, "what others change outside is not noticed", "drift that is repaired only at the next change of the spec", oracle.SameEnd),
		m(silentWithoutSecret, "deletion waits for credentials that are gone, without a word", "namespaces stuck in deletion because the Secret went first", oracle.SaysWhy),
		m(stuckWithoutSecret, "without credentials the cleanup is skipped", "leaks by namespace deletion", oracle.NoLeak, oracle.SameEnd),
		m(throttleIsTerminal, "throttling is taken for a refusal", "Azure Service Operator's classification of 429 before it was mended", oracle.SameEnd),
		m(panicsOnError, "the answer is used though there was an error", "nil results of cloud SDKs", oracle.SameEnd, oracle.NoPanic, oracle.BecomesIdle),
		m(swallowsCallErrors, "an error of the external system is logged and forgotten", "Acto (SOSP 2023)", oracle.SameEnd, oracle.NoLeak),
		m(staleCreate, "a resource is created for an object that the cache still has", "Sieve: acting on a past that a restart brings back", oracle.FinalizerFirst, oracle.SameEnd, oracle.NoLeak),
		m(silentFailure, "a failing call is tried again without a word in the status", "why is it stuck?", oracle.SaysWhy),
	}
}

func tokenMutants() []Mutant {
	m := mutantsOf(tokenWorkload)
	return []Mutant{
		m(noToken, "the resource is created without a token, and its id recorded afterwards", "a crash between create and record: five of forty plans in a hand-written reconciler", oracle.OneExternal, oracle.SameEnd, oracle.NoLeak),
		m(randomToken, "the token belongs to the process, not to the object", "idempotency tokens made anew at each try", oracle.OneExternal, oracle.SameEnd, oracle.NoLeak),
		m(searchesFirst, "instead of a token the inventory is searched, which is behind", "eventually consistent lists of cloud APIs", oracle.OneExternal, oracle.SameEnd, oracle.NoLeak),
	}
}

func externalWorkload(bug Bug) sim.Workload {
	return outsideWorkload("external", bug, sim.External{Name: "buckets", Identity: sim.IdentityName, Latency: 50 * time.Millisecond})
}

func tokenWorkload(bug Bug) sim.Workload {
	return outsideWorkload("token", bug, sim.External{Name: "buckets", Identity: sim.IdentityToken, ReadLag: 2})
}

// outsideWorkload is the life of a Widget with a resource outside the cluster.
func outsideWorkload(name string, bug Bug, system sim.External) sim.Workload {
	return sim.Workload{
		Name: name, Scheme: scheme, CRDs: definitions, Objects: []client.Object{newSecret()}, Externals: []sim.External{system},
		Operator: asManager(func(mgr ctrl.Manager, p *sim.Process) error {
			r := &outside{Client: mgr.GetClient(), live: mgr.GetAPIReader(), buckets: bucketsOf(mgr, p), bug: bug, tokens: system.Identity == sim.IdentityToken}
			return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Complete(r)
		}),
		Script: life(func(x *Widget) { x.Spec.Size = 5 }),
	}
}

const finalizer = "mutants.sim.ctrlkit.dev/bucket"

// outside keeps a resource outside the cluster for each Widget.
type outside struct {
	client.Client
	live    client.Reader
	buckets inventory
	bug     Bug
	tokens  bool
}

// poll is how often the resource is checked. A process changes it before it starts.
var poll = 20 * time.Second

func (r *outside) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, r.sweep(ctx, req)
		}
		return ctrl.Result{}, err
	}
	if !w.DeletionTimestamp.IsZero() {
		return r.clean(ctx, w)
	}
	if r.bug != effectBeforeFinalizer && r.bug != noFinalizer && controllerutil.AddFinalizer(w, finalizer) {
		return ctrl.Result{}, r.Update(ctx, w) // the change of it brings us back
	}
	before := w.DeepCopy().Status
	err := r.ensure(ctx, w)
	if r.bug == throttleIsTerminal && errors.Is(err, sim.ErrThrottled) || r.bug == swallowsCallErrors && err != nil {
		return ctrl.Result{}, nil
	}
	if r.bug == effectBeforeFinalizer && err == nil && controllerutil.AddFinalizer(w, finalizer) {
		return ctrl.Result{}, r.Update(ctx, w)
	}
	w.Status.ObservedGeneration = w.Generation
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "the bucket is there", ObservedGeneration: w.Generation}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Failed", messageOf(err)
	}
	if err == nil || r.bug != silentFailure {
		meta.SetStatusCondition(&w.Status.Conditions, condition)
	}
	if statusErr := saveStatus(ctx, r, w, before); err == nil {
		err = statusErr
	}
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: r.poll()}, nil
	case errors.Is(err, errNoCredentials):
		return ctrl.Result{RequeueAfter: poll}, nil
	}
	return ctrl.Result{}, err
}

func (r *outside) poll() time.Duration {
	if r.bug == ignoresDrift {
		return 0
	}
	return poll
}

// messageOf is the part of an error that is the same each time.
func messageOf(err error) string {
	for _, known := range []error{sim.ErrThrottled, sim.ErrUnavailable, sim.ErrLost, sim.ErrExists, sim.ErrNotFound, errNoCredentials, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the API server: " + reason(err)
}

var errNoCredentials = errors.New("the Secret with the credentials is not there")

// credentials reads the Secret without which nothing can be done outside.
func (r *outside) credentials(ctx context.Context, w *Widget) error {
	err := r.live.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Secret}, &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return errNoCredentials
	}
	return err
}

func (r *outside) name(w *Widget) string {
	return "bucket-" + string(w.UID)
}

func tags(w *Widget) map[string]string {
	return map[string]string{"widget": w.Namespace + "/" + w.Name, "uid": string(w.UID)}
}

// callTime is how long a call may take.
const callTime = 2 * time.Minute

// ensure makes the resource what it should be.
func (r *outside) ensure(ctx context.Context, w *Widget) error {
	if err := r.credentials(ctx, w); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	wanted := map[string]string{"size": strconv.Itoa(int(w.Spec.Size))}
	found, err := r.find(ctx, w)
	switch {
	case errors.Is(err, sim.ErrNotFound):
		return r.make(ctx, w, wanted)
	case err != nil && r.bug == panicsOnError:
		panic(fmt.Sprintf("no bucket: %v", err))
	case err != nil:
		return err
	}
	return r.use(ctx, w, found, wanted)
}

// use records the resource, and makes it what it should be.
func (r *outside) use(ctx context.Context, w *Widget, found sim.Resource, wanted map[string]string) error {
	w.Status.ExternalID = found.ID
	if maps.Equal(found.Spec, wanted) {
		return nil
	}
	return r.buckets.Update(ctx, found.ID, wanted)
}

// find looks for the resource.
func (r *outside) find(ctx context.Context, w *Widget) (sim.Resource, error) {
	switch {
	case !r.tokens && r.bug != existsIsError:
		return r.buckets.Get(ctx, r.name(w))
	case w.Status.ExternalID != "":
		return r.buckets.Get(ctx, w.Status.ExternalID)
	case r.bug == searchesFirst:
		list, err := r.buckets.FindByTag(ctx, "uid", string(w.UID))
		if err != nil || len(list) > 0 {
			return first(list), err
		}
	}
	return sim.Resource{}, sim.ErrNotFound
}

func first(list []sim.Resource) sim.Resource {
	if len(list) == 0 {
		return sim.Resource{}
	}
	return list[0]
}

// make creates the resource, if the object is really still there to clean up after it: the cache
// may be stale.
func (r *outside) make(ctx context.Context, w *Widget, spec map[string]string) error {
	if r.bug != staleCreate {
		current := &Widget{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(w), current); err != nil {
			return err
		}
		if current.UID != w.UID || !current.DeletionTimestamp.IsZero() || (r.bug == Right && !controllerutil.ContainsFinalizer(current, finalizer)) {
			return fmt.Errorf("the cache is behind: %w", sim.ErrNotFound)
		}
	}
	creation := sim.Creation{Name: r.name(w), Tags: tags(w), Spec: spec, Owner: w.UID}
	if r.tokens {
		creation.Name, creation.Token = "", string(w.UID)
		switch r.bug {
		case noToken, searchesFirst:
			creation.Token = ""
		case randomToken:
			creation.Token = time.Now().String()
		}
	}
	made, err := r.buckets.Create(ctx, creation)
	if errors.Is(err, sim.ErrExists) && r.bug != existsIsError {
		made, err = r.buckets.Get(ctx, r.name(w)) // an earlier try has made it: its name shows that it is ours
	}
	if err != nil {
		return err
	}
	return r.use(ctx, w, made, spec)
}

// clean deletes the resource, and then the finalizer.
func (r *outside) clean(ctx context.Context, w *Widget) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(w, finalizer) {
		return ctrl.Result{}, nil
	}
	before := w.DeepCopy().Status
	if r.bug == finalizerGoesFirst {
		controllerutil.RemoveFinalizer(w, finalizer)
		if err := r.Update(ctx, w); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.remove(ctx, w)
	}
	err := r.remove(ctx, w)
	if r.bug == stuckWithoutSecret && errors.Is(err, errNoCredentials) || r.bug == swallowsCallErrors {
		err = nil
	}
	if err != nil {
		if r.bug != silentWithoutSecret && r.bug != silentFailure {
			meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
				Type: "Ready", Status: metav1.ConditionFalse, Reason: "DeletionFailed", Message: messageOf(err), ObservedGeneration: w.Generation,
			})
		}
		if statusErr := saveStatus(ctx, r, w, before); statusErr != nil {
			return ctrl.Result{}, statusErr
		}
		if errors.Is(err, errNoCredentials) {
			return ctrl.Result{RequeueAfter: poll}, nil
		}
		return ctrl.Result{}, err
	}
	controllerutil.RemoveFinalizer(w, finalizer)
	return ctrl.Result{}, r.Update(ctx, w)
}

// remove deletes the resource, if there is one.
func (r *outside) remove(ctx context.Context, w *Widget) error {
	if err := r.credentials(ctx, w); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	id := r.name(w)
	switch {
	case r.tokens && w.Status.ExternalID == "":
		// What was created and not recorded is found by creating it once more with its token.
		if r.bug != Right {
			return nil
		}
		made, err := r.buckets.Create(ctx, sim.Creation{Token: string(w.UID), Tags: tags(w), Owner: w.UID})
		if err != nil {
			return err
		}
		id = made.ID
	case r.tokens:
		id = w.Status.ExternalID
	}
	err := r.buckets.Delete(ctx, id)
	if errors.Is(err, sim.ErrNotFound) && r.bug != notFoundIsError {
		return nil
	}
	return err
}

// sweep deletes the orphans of objects of a name that are gone although they had a finalizer, as a
// race in the API server makes possible.
func (r *outside) sweep(ctx context.Context, req ctrl.Request) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	orphans, err := r.buckets.FindByTag(ctx, "widget", req.String())
	if err != nil || len(orphans) == 0 {
		return err
	}
	current := &Widget{}
	if err := r.live.Get(ctx, req.NamespacedName, current); client.IgnoreNotFound(err) != nil {
		return err
	}
	for _, bucket := range orphans {
		if bucket.Tags["uid"] == string(current.UID) {
			continue
		}
		if err := r.buckets.Delete(ctx, bucket.ID); err != nil && !errors.Is(err, sim.ErrNotFound) {
			return err
		}
	}
	return nil
}
