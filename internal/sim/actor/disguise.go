// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// disguise makes objects of a kind that are unlike those of the operator: of theirs, they keep the
// name and what the server's validation demands. An object that keeps more would look like one of
// the operator's own, which it may rightly take over.
type disguise struct {
	cluster    *cluster.Cluster
	resource   schema.GroupVersionResource
	collection string

	custom  bool
	content map[string]any // the object so far, which the server accepts
	asked   int            // how often the server was asked
}

// maxQuestions bounds how often the server is asked for one object.
const maxQuestions = 300

// reducible are the built-in kinds whose validation is known to be complete enough to remove fields
// as long as the server accepts it. The others keep all of their fields.
var reducible = map[string]bool{
	"configmaps": true, "secrets": true, "services": true, "serviceaccounts": true, "pods": true, "deployments.apps": true,
	"replicasets.apps": true, "daemonsets.apps": true, "statefulsets.apps": true, "jobs.batch": true, "controllerrevisions.apps": true,
	"roles.rbac.authorization.k8s.io": true, "clusterroles.rbac.authorization.k8s.io": true, "namespaces": true,
}

// essential are the fields of built-in kinds that are never removed, because clients take for
// granted that they are there.
var essential = []string{"apiVersion", "kind", "metadata", "selector", "template", "containers", "image", "name", "ports", "port", "serviceName"}

// of returns an object of the name of another one, and unlike it. It has no owner.
func (d *disguise) of(wanted *unstructured.Unstructured) *unstructured.Unstructured {
	d.custom = d.cluster.IsCustom(d.resource)
	metadata := map[string]any{"name": wanted.GetName(), "annotations": map[string]any{cluster.Foreign: "true"}, "labels": cluster.AnothersLabels()}
	if ns := wanted.GetNamespace(); ns != "" {
		metadata["namespace"] = ns
	}
	d.content = runtime.DeepCopyJSON(wanted.Object)
	d.content["metadata"] = metadata
	delete(d.content, "status")

	d.try(func() { relabel(d.content) })
	if d.custom || reducible[d.resource.GroupResource().String()] {
		d.reduce(d.content)
	}
	d.rename(d.content)
	switch d.resource.GroupResource().String() {
	case "configmaps":
		d.content["data"] = map[string]any{"another": "1"}
	case "secrets":
		d.content["data"] = map[string]any{"another": "MQ=="}
	}
	return &unstructured.Unstructured{Object: d.content}
}

// try keeps a change of the content if the server accepts it.
func (d *disguise) try(change func()) bool {
	before := runtime.DeepCopyJSON(d.content)
	change()
	if d.accepted() {
		return true
	}
	d.content = before
	return false
}

func (d *disguise) accepted() bool {
	d.asked++
	return d.asked <= maxQuestions && d.cluster.Accepts(d.collection, d.content)
}

// relabel gives what an object selects, and the objects that it makes, other labels.
func relabel(node map[string]any) {
	for k, v := range node {
		child, ok := v.(map[string]any)
		switch {
		case !ok:
		case k == "selector" && child["matchLabels"] != nil:
			node[k] = map[string]any{"matchLabels": cluster.AnothersLabels()}
		case k == "selector":
			node[k] = cluster.AnothersLabels()
		case k == "template":
			if metadata, ok := child["metadata"].(map[string]any); ok {
				metadata["labels"] = cluster.AnothersLabels()
			}
			relabel(child)
		case k != "metadata":
			relabel(child)
		}
	}
}

// reduce removes the fields of a part of the content that the server does not demand.
func (d *disguise) reduce(node map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(node)) {
		if k == "metadata" || k == "apiVersion" || k == "kind" || k == "selector" {
			continue
		}
		v := node[k]
		if d.custom || !slices.Contains(essential, k) {
			delete(node, k)
			if d.accepted() {
				continue
			}
			node[k] = v
		}
		switch v := v.(type) {
		case map[string]any:
			d.reduce(v)
		case []any:
			if len(v) > 1 {
				node[k] = v[:1]
				if !d.accepted() {
					node[k] = v
				}
			}
			for _, element := range v {
				if m, ok := element.(map[string]any); ok {
					d.reduce(m)
				}
			}
		}
	}
}

// rename gives the strings of a part of the content another value, where the server accepts it: all
// of those of custom kinds, whose schema says which values they can have, and images.
func (d *disguise) rename(node map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(node)) {
		switch v := node[k].(type) {
		case map[string]any:
			if k != "metadata" && k != "selector" {
				d.rename(v)
			}
		case []any:
			for _, element := range v {
				if m, ok := element.(map[string]any); ok {
					d.rename(m)
				}
			}
		case string:
			if k == "apiVersion" || k == "kind" || !d.custom && k != "image" {
				continue
			}
			node[k] = "another"
			if !d.accepted() {
				node[k] = v
			}
		}
	}
}
