// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// states is what one step knows of the cluster: how objects are, by the rules of kstatus, and which
// kinds have a namespace. It is safe for concurrent use.
type states struct {
	known  *lru.Cache // of types.UID to knownState
	scopes sync.Map   // of schema.GroupVersionKind to bool
}

// knownState is how an object was in a version.
type knownState struct {
	version       string
	ready, failed bool
	lacks         string
}

// mostStates limits what is kept: a state of an object that does not change need not be computed
// again.
const mostStates = 8192

func newStates() *states { return &states{known: lru.New(mostStates)} }

// of returns whether an object is ready, whether it has failed for good, and what it lacks.
func (s *states) of(it *item, obj client.Object) (ready, failed bool, lacks string, err error) {
	switch {
	case it.policy.has(NoWait):
		return true, false, "", nil
	case it.policy.ready == nil && alwaysReady[it.groupKind().String()]:
		return true, false, "", nil
	case it.policy.ready != nil:
		u, err := unstructuredOf(obj, it.gvk)
		if err != nil {
			return false, false, "", fmt.Errorf("reading %s: %w", it.Ref, err)
		}
		if u == obj {
			u = u.DeepCopy() // it may be that of the cache
		}
		ready, lacks := it.policy.ready(u)
		return ready, false, lacks, nil
	}
	if found, ok := s.known.Get(obj.GetUID()); ok {
		if known := found.(knownState); known.version == obj.GetResourceVersion() { //nolint:errcheck // put there below
			return known.ready, known.failed, known.lacks, nil
		}
	}
	known, err := s.compute(obj, it.gvk)
	if err != nil {
		return false, false, "", fmt.Errorf("finding out whether %s is ready: %w", it.Ref, err)
	}
	s.known.Add(types.UID(obj.GetUID()), known)
	return known.ready, known.failed, known.lacks, nil
}

// alwaysReady are kinds that are ready when they exist, and that operators have many of.
var alwaysReady = map[string]bool{
	"ConfigMap": true, "Secret": true, "ServiceAccount": true,
	"Role.rbac.authorization.k8s.io": true, "RoleBinding.rbac.authorization.k8s.io": true,
	"ClusterRole.rbac.authorization.k8s.io": true, "ClusterRoleBinding.rbac.authorization.k8s.io": true,
}

func (s *states) compute(obj client.Object, gvk schema.GroupVersionKind) (knownState, error) {
	u, err := unstructuredOf(obj, gvk)
	if err != nil {
		return knownState{}, err
	}
	computed, err := status.Compute(u)
	if err != nil {
		return knownState{}, err
	}
	known := knownState{
		version: obj.GetResourceVersion(), ready: computed.Status == status.CurrentStatus,
		failed: computed.Status == status.FailedStatus, lacks: lacksOf(computed.Message),
	}
	if known.ready && gvk.GroupKind() == jobKind {
		known.ready, known.lacks = isComplete(u)
	}
	return known, nil
}

var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// isComplete reports whether a Job that has not failed is complete, and what it lacks. To kstatus a
// Job is current from its start, but what waits for a migration waits for its end.
func isComplete(job *unstructured.Unstructured) (complete bool, lacks string) {
	with, err := status.GetObjectWithConditions(job.Object)
	if err == nil && slices.ContainsFunc(with.Status.Conditions, func(c status.BasicCondition) bool {
		return c.Type == "Complete" && c.Status == corev1.ConditionTrue
	}) {
		return true, ""
	}
	wanted := status.GetIntField(job.Object, ".spec.completions", 1)
	return false, fmt.Sprintf("%d of %d Pods succeeded", status.GetIntField(job.Object, ".status.succeeded", 0), wanted)
}

// unstructuredOf returns an object, with the apiVersion and kind that typed objects of a cache do
// not have: kstatus has rules for each kind.
func unstructuredOf(obj client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// lacksOf makes a message of kstatus a part of a sentence: "Updated: 1/2" is "1 of 2 replicas
// updated". What it says only for programs, such as generations, is left out.
func lacksOf(message string) string {
	if m := counts.FindStringSubmatch(message); m != nil {
		what := strings.ToLower(m[1])
		if what == "replicas" {
			what = "created"
		}
		return fmt.Sprintf("%s of %s replicas %s", m[2], m[3], what)
	}
	if m := surplus.FindStringSubmatch(message); m != nil {
		if m[1] == "1" {
			return "1 surplus replica to be removed"
		}
		return m[1] + " surplus replicas to be removed"
	}
	if unobserved.MatchString(message) {
		return "its controller has not seen the last change"
	}
	return message
}

var (
	counts     = regexp.MustCompile(`^(Replicas|Labelled|Updated|Available|Ready|[Cc]urrent|updated): (\d+)/(\d+)$`)
	surplus    = regexp.MustCompile(`^Pending termination: (\d+)$`)
	unobserved = regexp.MustCompile(`^\w+ (generation is \d+, but latest observed generation is \d+|status\.observedGeneration not found)$`)
)
