// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
)

// Occupy creates an object with the name of the one that a request is about to create, as a user or
// a package manager does who knows nothing of the operator. It has no owner. It is removed after
// some time.
func (a *Actors) Occupy(r *apiserver.Request) {
	if wanted, ok := cluster.CreatedBy(r); ok && wanted.GetName() != "" {
		a.occupy(r, wanted, nil)
	}
}

// OccupyByController is [Actors.Occupy] for an object that another controller has created.
func (a *Actors) OccupyByController(r *apiserver.Request) {
	wanted, ok := cluster.CreatedBy(r)
	if !ok || wanted.GetName() == "" {
		return
	}
	if owner, ok := a.createAndRead(foreignController(wanted)); ok {
		a.occupy(r, wanted, owner)
	}
}

// foreignController returns a controller of another object, and the path of its kind. It does
// nothing, and few operators watch its kind.
func foreignController(of *unstructured.Unstructured) (collection string, content map[string]any) {
	metadata := map[string]any{"name": "controller-of-" + of.GetName(), "annotations": map[string]any{cluster.Foreign: "true"}}
	if of.GetNamespace() == "" { // what is outside of namespaces can't be owned by what is inside
		return "/apis/rbac.authorization.k8s.io/v1/clusterroles", map[string]any{"metadata": metadata}
	}
	metadata["namespace"] = of.GetNamespace()
	return "/api/v1/namespaces/" + of.GetNamespace() + "/replicationcontrollers", map[string]any{
		"metadata": metadata,
		"spec": map[string]any{"replicas": 0, "selector": anothersLabels(), "template": map[string]any{
			"metadata": map[string]any{"labels": anothersLabels()},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "another", "image": "another"}}},
		}},
	}
}

// occupy creates an occupant, and removes it and its owner, if any, after some time. What the
// operator has put in its place by then stays.
func (a *Actors) occupy(r *apiserver.Request, wanted *unstructured.Unstructured, owner *stored) {
	collection := cluster.CollectionPath(r.Resource, r.Namespace)
	occupant := (&disguise{cluster: a.cluster, resource: r.Resource, collection: collection}).of(wanted)
	if owner != nil {
		controls := true
		occupant.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &controls,
		}})
	}
	created, ok := a.createAndRead(collection, occupant.Object)
	if !ok { // the name was taken already
		a.deleteExactly(owner)
		return
	}
	a.time.After(occupiedTime, func() {
		a.deleteExactly(created)
		a.deleteExactly(owner)
		a.time.SlowDown(occupiedTime)
	})
}

// orphan is an object of an earlier owner that another client has left.
type orphan struct {
	used bool // the operator has changed it
}

// formerUID takes the place of the UIDs of owners in an orphan: its owner was another one.
const formerUID = "0f0f0f0f-0000-4000-8000-000000000000"

// LeaveOrphan creates the object that a request is about to create as an earlier owner has left it,
// which was deleted with kubectl delete --cascade=orphan: with the labels and the spec of the
// operator, and without an owner.
//
// The operator may adopt or delete it, or refuse to use it. Where it refuses, the orphan is removed
// when everything is idle. Where it uses the orphan without becoming its owner, the orphan stays, so
// that the world differs: with the next owner, nothing would remove it.
func (a *Actors) LeaveOrphan(r *apiserver.Request) {
	wanted, ok := cluster.CreatedBy(r)
	if !ok || !cluster.IsOwned(wanted) {
		return
	}
	var owners []types.UID
	for _, reference := range wanted.GetOwnerReferences() {
		owners = append(owners, reference.UID)
	}
	collection := cluster.CollectionPath(r.Resource, r.Namespace)
	created, ok := a.createAndRead(collection, leftBehind(wanted))
	if !ok {
		return
	}
	left := &orphan{}
	a.orphans[created.GetUID()] = left
	a.time.WhenIdle(func() {
		of := cluster.ObjectName(r.Resource, r.Namespace, created.GetName())
		now, err := a.cluster.LookUp(of)
		switch {
		case err != nil || now.GetUID() != created.GetUID() || len(now.GetOwnerReferences()) > 0 || left.used:
			return
		case wanted.GetName() != "" && !a.explained(owners):
			a.trace.Add("sim", "heal", "the orphan stays: no condition of its owner says that the name is taken")
			return
		}
		a.trace.Add("sim", "heal", "the orphan that was not adopted is taken away")
		a.deleteExactly(created)
		a.time.SlowDown(a.time.Quiet())
	})
}

// explained reports whether one of several owners says why it can't continue.
func (a *Actors) explained(owners []types.UID) bool {
	for _, uid := range owners {
		if a.notes.Explains(uid) {
			return true
		}
	}
	return false
}

// leftBehind returns an object without its owners and their UIDs.
func leftBehind(wanted *unstructured.Unstructured) map[string]any {
	left := &unstructured.Unstructured{Object: cluster.CloneJSON(wanted.Object)}
	for _, reference := range wanted.GetOwnerReferences() {
		replaceStrings(left.Object, string(reference.UID), formerUID)
	}
	metadata := map[string]any{}
	had, _ := left.Object["metadata"].(map[string]any)
	for _, k := range []string{"name", "generateName", "namespace", "labels", "annotations"} {
		if v, ok := had[k]; ok {
			metadata[k] = v
		}
	}
	left.Object["metadata"] = metadata
	delete(left.Object, "status")
	return left.Object
}

// stored is an object as the server has stored it.
type stored struct {
	collection string // the path of its kind
	*unstructured.Unstructured
}

// createAndRead creates an object, and returns it as the server has stored it.
func (a *Actors) createAndRead(collection string, content map[string]any) (*stored, bool) {
	data, err := json.Marshal(content)
	if err != nil {
		a.trace.Add("other", "write", "encoding: "+err.Error())
		return nil, false
	}
	body, err := a.cluster.Ask("other", http.MethodPost, collection, "application/json", data)
	if err != nil {
		return nil, false // the trace has it
	}
	created := &stored{collection, &unstructured.Unstructured{}}
	return created, created.UnmarshalJSON(body) == nil
}

// deleteExactly deletes an object, but no other one of its name. Nil is none.
func (a *Actors) deleteExactly(obj *stored) {
	if obj == nil {
		return
	}
	a.ask(http.MethodDelete, obj.collection+"/"+obj.GetName(), "application/json", map[string]any{
		"propagationPolicy": "Background", "preconditions": map[string]any{"uid": obj.GetUID()},
	})
}
