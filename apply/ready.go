// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
		u, err := unstructuredOf(it, obj)
		if err != nil {
			return false, false, "", fmt.Errorf("reading %s: %w", it.Ref, err)
		}
		ready, lacks := it.policy.ready(u)
		return ready, false, lacks, nil
	}
	if found, ok := s.known.Get(obj.GetUID()); ok {
		if known := found.(knownState); known.version == obj.GetResourceVersion() { //nolint:errcheck // put there below
			return known.ready, known.failed, known.lacks, nil
		}
	}
	known, err := compute(it, obj)
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

func compute(it *item, obj client.Object) (knownState, error) {
	u, err := unstructuredOf(it, obj)
	if err != nil {
		return knownState{}, err
	}
	computed, err := status.Compute(u)
	if err != nil {
		return knownState{}, err
	}
	return knownState{
		version: obj.GetResourceVersion(), ready: computed.Status == status.CurrentStatus,
		failed: computed.Status == status.FailedStatus, lacks: lacksOf(computed.Message),
	}, nil
}

// unstructuredOf returns an object, with the apiVersion and kind that typed objects of a cache do
// not have.
func unstructuredOf(it *item, obj client.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(it.gvk) // the rules of kstatus are chosen by it
	return u, nil
}

// lacksOf makes a message of kstatus a part of a sentence: "Updated: 1/2" is "1 of 2 replicas
// updated".
func lacksOf(message string) string {
	if m := counts.FindStringSubmatch(message); m != nil {
		what := strings.ToLower(m[1])
		if what == "replicas" {
			what = "created"
		}
		return fmt.Sprintf("%s of %s replicas %s", m[2], m[3], what)
	}
	return message
}

var counts = regexp.MustCompile(`^(Replicas|Labelled|Updated|Available|Ready): (\d+)/(\d+)$`)
