// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
	"github.com/ctrlkit/ctrlkit/internal/engine/health"
)

// A Job with the policy Once runs for each content until it has completed once. Which contents have
// is noted in an annotation of the owner before anything may delete the Job: until then it is
// applied without its ttlSecondsAfterFinished, so that a Job that is not there has not completed.

// onceAnnotation is on each Job with the policy [Once]: the hash of the content that it runs for.
const onceAnnotation = "apply.ctrlkit.dev/once"

// oncePrefix begins the annotation of the owner of a set that names what has completed.
const oncePrefix = "once.apply.ctrlkit.dev/"

var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// changeable are the fields of a Job that can be changed while it exists, and that do not say what
// it runs.
var changeable = []string{ttlField, "activeDeadlineSeconds", "backoffLimit", "parallelism", "suspend"}

const ttlField = "ttlSecondsAfterFinished"

// A once says for which content a Job runs.
type once struct {
	hash string
	done bool // it has completed, as the owner says
	ttl  any  // what is held back until then
	// completed is the hash of a content that has completed, and that the owner does not name yet.
	completed string
}

// runOnce prepares an item with the policy Once.
func (k *keeper) runOnce(it *item) error {
	if it.groupKind() != jobKind {
		return fmt.Errorf("it is a %s, and apply.Once is for Jobs: only these have an end", it.Kind)
	}
	spec, _ := it.content["spec"].(map[string]any)
	made := maps.Clone(spec)
	maps.DeleteFunc(made, func(field string, _ any) bool { return slices.Contains(changeable, field) })
	it.once = &once{hash: witness.Hash(made), ttl: spec[ttlField]}
	if it.once.done = k.runs.has(it.Ref, it.once.hash); !it.once.done {
		delete(spec, ttlField)
	}
	metadata, _ := it.content["metadata"].(map[string]any)
	return put(metadata, "annotations", onceAnnotation, it.once.hash)
}

// recorded takes back what was held back, if the owner names the content by now.
func (it *item) recorded(r runs) {
	if it.once.completed = ""; it.once.done || !r.has(it.Ref, it.once.hash) {
		return
	}
	it.once.done = true
	if it.once.ttl != nil {
		it.content["spec"].(map[string]any)[ttlField] = it.once.ttl //nolint:errcheck // it was there
		it.hash = witness.Hash(it.content)
	}
}

// ensureOnce returns the Job as it is in the cluster, nil if it is gone and has completed.
func (c *child) ensureOnce(ctx context.Context) (client.Object, error) {
	current := c.kind.empty(c.gvk)
	err := c.client.Get(ctx, c.key(), current, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err) && c.once.done:
		return nil, nil //nolint:nilnil // there need not be one
	case apierrors.IsNotFound(err):
		return c.start(ctx)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", c.Ref, err)
	}
	e, err := evidenceOf(ctx, c.keeper, c.Ref, current, c.item, &c.policy)
	if err != nil {
		return nil, err
	}
	hash := current.GetAnnotations()[onceAnnotation]
	switch {
	case e.wanted() == verdictOurs && isComplete(current, c.gvk) && hash != "" && !c.runs.has(c.Ref, hash):
		c.once.completed = hash // which is noted before it may be gone
		return current, nil
	case c.once.done && (hash != c.once.hash || !current.GetDeletionTimestamp().IsZero()):
		return current, nil // it ran for another content after that of the set, or its time is over
	case hash == c.once.hash || hash == "":
		current, err = c.update(ctx, current)
	default:
		return c.supersede(ctx, current)
	}
	if err != nil || c.once.done {
		return current, err
	}
	return current, c.failureOf(current)
}

// start creates the Job, if its content has not completed: the cache may have an owner that does
// not say so yet.
func (c *child) start(ctx context.Context) (client.Object, error) {
	if c.live != nil {
		owner, err := newestOwner(ctx, c.keeper)
		if err != nil {
			return nil, err
		}
		newest, err := runsOf(owner, c.notes(oncePrefix, c.manager))
		if err != nil {
			return nil, err
		}
		if newest.has(c.Ref, c.once.hash) {
			return nil, &waitError{what: "the cache to say that " + c.Ref.String() + " has completed", unseen: true}
		}
	}
	answer, err := c.createOnly(ctx)
	if apierrors.IsConflict(err) {
		return nil, &waitError{what: fmt.Sprintf("the cache to have %s, which exists", c.Ref), unseen: true}
	}
	return answer, err
}

// supersede deletes a Job that runs, or ran, for another content. It is not created again before its
// Pods are gone, too.
func (c *child) supersede(ctx context.Context, current client.Object) (client.Object, error) {
	policy, err := c.policy.with(current, c.manager)
	if err == nil {
		_, err = c.mayWrite(ctx, current, &policy)
	}
	switch {
	case err != nil:
		return nil, err
	case policy.frozen || policy.has(CreateOnly):
		return current, nil
	case !policy.has(Replace):
		return nil, failure.Terminal(fmt.Errorf("%s runs for another content, and its annotations do not let it be deleted", c.Ref), reasonImmutableField, "delete it, so that it is created again")
	}
	if err := c.delete(ctx, c.Ref, current, metav1.DeletePropagationForeground); err != nil {
		return nil, err
	}
	return nil, &waitError{what: c.Ref.String() + " to be gone, to run for another content"}
}

// failureOf returns an error if the Job has failed.
func (c *child) failureOf(job client.Object) error {
	s := health.OfKind(job, c.gvk)
	if s.State != health.StateFailed {
		return nil
	}
	remedy := "correct what it is made from, or run it again: kubectl delete job " + c.Name
	if c.Namespace != "" {
		remedy += " -n " + c.Namespace
	}
	return failure.Terminal(fmt.Errorf("%s has failed: %s", c.Ref, s.Message), reasonJobFailed, remedy)
}

// isComplete reports whether a Job has completed, whether or not it is being deleted.
func isComplete(job client.Object, gvk schema.GroupVersionKind) bool {
	if !job.GetDeletionTimestamp().IsZero() {
		job = job.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
		job.SetDeletionTimestamp(nil)
	}
	return health.OfKind(job, gvk).State == health.StateReady
}

// recordRuns notes in the owner what has completed, and keeps the Jobs that waited for that.
func (k *keeper) recordRuns(ctx context.Context, states []*state) error {
	var waiting []*state
	newest := k.runs
	for _, s := range states {
		if s.item.once != nil && s.item.once.completed != "" && s.err == nil {
			newest = newest.with(s.item.Ref, s.item.once.completed)
			waiting = append(waiting, s)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	if err := k.rememberRuns(ctx, newest); err != nil {
		return err
	}
	for _, s := range waiting {
		s.item.recorded(k.runs)
	}
	k.each(ctx, waiting)
	return nil
}

// recordLeft notes what has completed of the Jobs that have left the set, before they are deleted:
// the set may want them again.
func (k *keeper) recordLeft(ctx context.Context, leftovers []leftover) error {
	newest := k.runs
	for _, l := range leftovers {
		hash := l.object.GetAnnotations()[onceAnnotation]
		if hash != "" && l.groupKind() == jobKind && isComplete(l.object, jobKind.WithVersion("v1")) {
			newest = newest.with(l.Ref, hash)
		}
	}
	return k.rememberRuns(ctx, newest)
}

func (k *keeper) rememberRuns(ctx context.Context, newest runs) error {
	if slices.Equal(newest, k.runs) {
		return nil
	}
	for i, n := range k.notes(oncePrefix, k.manager) {
		value := newest.String()
		if i > 0 {
			value = ""
		}
		if n.shared { // the notes of other engines are not distinguished from ours
			break
		}
		if err := k.remember(ctx, n.key, value); err != nil {
			return fmt.Errorf("noting which Jobs have completed: %w", err)
		}
	}
	k.runs = newest
	return nil
}

// runs are the contents that have completed, the latest last: "default/migration 1a2b3c".
type runs []string

// mostRuns is how many contents an owner remembers of a set.
const mostRuns = 100

// runsOf reads what an owner remembers.
func runsOf(owner client.Object, notes []note) (runs, error) {
	var all runs
	for _, n := range notes {
		read, err := parseRuns(owner.GetAnnotations()[n.key])
		if err != nil {
			return nil, failure.Terminal(fmt.Errorf("annotation %s: %w: without it, Jobs would run again that have completed", n.key, err),
				reasonWrongSet, "restore it, or remove it to have all Jobs of the set run again")
		}
		for _, entry := range read {
			if !slices.Contains(all, entry) {
				all = append(all, entry)
			}
		}
	}
	return all, nil
}

func parseRuns(text string) (runs, error) {
	if text == "" {
		return nil, nil
	}
	var all runs
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	for _, entry := range all {
		if name, hash, ok := strings.Cut(entry, " "); !ok || name == "" || hash == "" {
			return nil, errors.New("an entry is no name with a hash")
		}
	}
	return all, nil
}

// String is the reverse of parseRuns.
func (r runs) String() string {
	if len(r) == 0 {
		return ""
	}
	data, _ := json.Marshal([]string(r)) //nolint:errcheck // strings have JSON
	return string(data)
}

func (r runs) has(ref Ref, hash string) bool { return slices.Contains(r, runOf(ref, hash)) }

// with returns the runs with one more. The oldest are forgotten.
func (r runs) with(ref Ref, hash string) runs {
	if r.has(ref, hash) {
		return r
	}
	all := append(slices.Clone(r), runOf(ref, hash))
	return all[max(0, len(all)-mostRuns):]
}

func runOf(ref Ref, hash string) string {
	return strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/") + " " + hash
}
