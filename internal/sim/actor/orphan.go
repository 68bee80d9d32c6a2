// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// orphan is an object of an earlier owner that another client has left.
type orphan struct {
	used bool // the operator has changed it
}

// LeaveOrphan creates the object that a request is about to create as an earlier owner has left it,
// which was deleted with kubectl delete --cascade=orphan: with the labels, the spec and the field
// manager of the operator, and without an owner.
//
// The operator may adopt or delete it, or refuse to use it. Where it refuses, the orphan is removed
// after some time, as by the user who reads why. Where the operator uses the orphan without becoming
// its owner, it stays, so that the world differs: nothing would remove it with the owner.
func (a *Actors) LeaveOrphan(r *apiserver.Request) {
	wanted, ok := cluster.CreatedBy(r)
	if !ok || !cluster.IsOwned(wanted) {
		return
	}
	var owners []types.UID
	for _, reference := range wanted.GetOwnerReferences() {
		owners = append(owners, reference.UID)
	}
	created, ok := createAs(a, r, cluster.LeftBehind(wanted))
	if !ok {
		return
	}
	left := &orphan{}
	a.orphans[created.GetUID()] = left
	a.time.After(occupiedTime, func() {
		of := cluster.ObjectName(r.Resource, r.Namespace, created.GetName())
		now, err := a.cluster.LookUp(of)
		switch {
		case err != nil || now.GetUID() != created.GetUID() || len(now.GetOwnerReferences()) > 0 || left.used:
			return
		case wanted.GetName() != "" && !slices.ContainsFunc(owners, a.notes.Explains):
			a.trace.Add("other", "write", cluster.OrphanStays)
			return
		}
		a.deleteExactly(created)
		a.time.SlowDown(occupiedTime)
	})
}

// createAs creates an object in the way in which a request is about to, with the same field
// manager: an apply of the operator then removes the fields that it does not want any more.
func createAs(a *Actors, r *apiserver.Request, content map[string]any) (*stored, bool) {
	data, err := json.Marshal(content)
	if err != nil {
		a.trace.Add("other", "write", "encoding: "+err.Error())
		return nil, false
	}
	request := *r
	request.Actor, request.User, request.Accept, request.Body = "other", nil, "", data
	if !cluster.IsApply(r) {
		request.ContentType = "application/json"
	}
	body, err := a.cluster.Answer(&request)
	if err != nil {
		return nil, false // the trace has it
	}
	created := &stored{cluster.CollectionPath(r.Resource, r.Namespace), &unstructured.Unstructured{}}
	return created, created.UnmarshalJSON(body) == nil
}
