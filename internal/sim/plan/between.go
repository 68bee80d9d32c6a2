// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// State is the objects of some resources of a cluster at a time.
type State map[key]map[string]any

// StateOf reads the objects of resources. A source that keeps what it has read must be a new one.
func StateOf(ctx context.Context, source memory.Source, resources []schema.GroupVersionResource) (State, error) {
	state := State{}
	for _, resource := range resources {
		contents, err := source.Read(ctx, resource)
		if err != nil {
			return nil, err
		}
		for _, content := range contents {
			obj := &unstructured.Unstructured{Object: content}
			state[key{resource.GroupResource(), obj.GetNamespace(), obj.GetName()}] = content
		}
	}
	return state, nil
}

// Until returns the changes that lead from one state to another, ordered by nothing, as a plan has
// them: to compare what has happened with what was planned. Who has made them is not known.
func (s State) Until(later State) []Change {
	phase := map[key]*history{}
	for k, content := range s {
		if now := later[k]; now == nil || (&unstructured.Unstructured{Object: content}).GetResourceVersion() != (&unstructured.Unstructured{Object: now}).GetResourceVersion() {
			phase[k] = &history{key: k, first: content, last: now, recreated: now != nil}
		}
	}
	for k, now := range later {
		if s[k] == nil {
			phase[k] = &history{key: k, last: now}
		}
	}
	byUID, values := map[string]map[string]any{}, new(secrets.Values)
	for _, state := range []State{s, later} {
		for _, content := range state {
			byUID[uidOf(content)] = content
			addSecret(values, &unstructured.Unstructured{Object: content})
		}
	}
	return changesOf(phase, func(uid string) map[string]any { return byUID[uid] }, values)
}
