// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
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
	if owner, ok := a.createAndRead(cluster.ForeignController(wanted)); ok {
		a.occupy(r, wanted, owner)
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
