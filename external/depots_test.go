// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Depot stands for a resource in a system that the simulator plays.
type (
	Depot     = testkind.Object[DepotSpec, DepotStatus]
	DepotList = testkind.List[DepotSpec, DepotStatus]
)

type DepotSpec struct {
	Size int32 `json:"size,omitempty"`
}

type DepotStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ID                 string             `json:"id,omitempty"` // for the reconciler written by hand
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

var depotScheme = testkind.Scheme(testkind.Of[DepotSpec, DepotStatus]("Depot"))

func depot(name string) *Depot {
	return &Depot{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: DepotSpec{Size: 1}}
}

// depots connects to a system that the simulator plays.
type depots struct {
	system  *sim.ExternalClient
	lagging bool // it observes by a list, which is stale
	leak    leak // nil is right

	ownerless bool // it does not show whose a resource is
}

func (d depots) Connect(ctx context.Context, req *step.Request[*Depot]) (external.Client[*Depot], error) {
	if err := login(ctx, req); err != nil {
		return nil, err
	}
	return depotClient{d, journal.RunFromContext(ctx)}, nil
}

// watchedByDepots makes a change of the credentials reconcile all Depots.
func watchedByDepots() []step.Watch {
	return []step.Watch{{Object: &corev1.Secret{}, NamedBy: func(client.Object) []client.ObjectKey {
		return []client.ObjectKey{client.ObjectKeyFromObject(canaries())}
	}}}
}

type depotClient struct {
	depots
	run *journal.Run
}

// note writes into the journal, and nowhere else.
func (c depotClient) note(text string) error {
	c.run.Note(context.Background(), journal.Called{What: "login " + text})
	return nil
}

var _ external.Finder[*Depot] = depotClient{}

func (c depotClient) Observe(ctx context.Context, obj *Depot, id string) (external.Observation, error) {
	seen, err := c.observe(ctx, obj, id)
	if c.leak != nil {
		err = c.leak(c, obj, &seen, err)
	}
	return seen, err
}

func (c depotClient) observe(ctx context.Context, obj *Depot, id string) (external.Observation, error) {
	found, err := c.get(ctx, id)
	switch {
	case errors.Is(err, sim.ErrNotFound):
		return external.Observation{State: external.Absent}, nil
	case err != nil:
		return external.Observation{}, err
	}
	seen := external.Observation{
		State: external.UpToDate, Owner: found.Tags["owner"],
		Connection: map[string][]byte{"password": []byte(depotCanary), "address": []byte("depots/" + size(obj))},
	}
	if c.ownerless {
		seen.Owner = ""
	}
	if found.Spec["size"] != size(obj) {
		seen.State, seen.Drift = external.Drifted, []string{"spec.size"}
	}
	return seen, nil
}

func (c depotClient) get(ctx context.Context, id string) (sim.Resource, error) {
	if !c.lagging {
		return c.system.Get(ctx, id)
	}
	all, err := c.system.List(ctx)
	if err != nil {
		return sim.Resource{}, err
	}
	for _, r := range all {
		if r.ID == id {
			return r, nil
		}
	}
	return sim.Resource{}, sim.ErrNotFound
}

func (c depotClient) Create(ctx context.Context, obj *Depot, creation external.Creation) (string, error) {
	made, err := c.system.Create(ctx, sim.Creation{
		Name: creation.Name, Token: creation.Token, Owner: obj.UID,
		// The owner is what an audit compares, and a person. Only a system with tags is searched
		// by it.
		Tags: map[string]string{"owner": external.OwnerOf(obj)}, Spec: map[string]string{"size": size(obj)},
	})
	switch {
	case errors.Is(err, sim.ErrExists):
		return creation.Name, nil
	case errors.Is(err, sim.ErrThrottled), errors.Is(err, sim.ErrUnavailable):
		return "", external.Refused(err)
	}
	return made.ID, err
}

func (c depotClient) Update(ctx context.Context, obj *Depot, id string) error {
	return c.system.Update(ctx, id, map[string]string{"size": size(obj)})
}

func (c depotClient) Delete(ctx context.Context, _ *Depot, id string) error {
	if err := c.system.Delete(ctx, id); !errors.Is(err, sim.ErrNotFound) {
		return err
	}
	return nil
}

func (c depotClient) Find(ctx context.Context, _ *Depot, tag string) (string, error) {
	found, err := c.system.FindByTag(ctx, "owner", tag)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].ID, nil
}

func size(obj *Depot) string { return strconv.Itoa(int(obj.Spec.Size)) }

// inventory lists the resources of a world, for an audit and for a person.
type inventory struct{ world *sim.World }

func (i inventory) List(context.Context) ([]external.Resource, error) {
	var all []external.Resource
	for _, r := range i.world.Resources("depots") {
		all = append(all, external.Resource{ID: r.ID, Owner: r.Tags["owner"]})
	}
	return all, nil
}

// of returns the id of the resource that was created for an object, empty if there is none.
func (i inventory) of(owner types.UID) string {
	for _, r := range i.world.Resources("depots") {
		if r.Tags["owner"] == string(owner) {
			return r.ID
		}
	}
	return ""
}
