// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The operator ends in the same state whatever goes wrong, in the cluster and in the DNS.
func TestSurvivesEverything(t *testing.T) {
	exampletest.Simulate(t, simWorkload(t))
}

func simWorkload(t *testing.T) sim.Workload {
	return sim.Workload{
		Scheme: simScheme(t), CRDs: []string{"config/crd/bases"},
		Externals: []sim.External{{Name: "dns", Identity: sim.IdentityName}},
		Quiet:     15 * time.Minute, // longer than the time after which a record is looked at again
		Operator: func(ctx context.Context, p *sim.Process) error {
			mgr, err := website(simDNS{p.External("dns")}).Manager(p.Config(), p.ManagerOptions())
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
		Script: func(w *sim.World) {
			secret, site := newSecret(), newShop()
			site.Spec.Priority = new(int32(100))
			site.Spec.Replicas = new(int32(1)) // each Pod adds events, and with them plans
			w.Create(site)                     // it waits for its credentials
			w.Create(secret)
			w.Settle()
			sim.Update(w, secret, func(s *corev1.Secret) { s.Data["DB_PASSWORD"] = []byte("s3cr3t-two") })
			sim.Update(w, site, func(s *v1.Website) { s.Spec.Content["index.html"], s.Spec.Public = "Closed", true })
			w.Settle()
			sim.Update(w, site, func(s *v1.Website) { s.Spec.Priority, s.Spec.Public = nil, false })
			w.Settle()
			w.Delete(site)
			w.Settle()
		},
	}
}

// simDNS keeps the records in a system of the simulator, where calls fail and records outlive
// crashes.
type simDNS struct{ records *sim.ExternalClient }

var _ DNS = simDNS{}

func (d simDNS) Ensure(ctx context.Context, host, target string, owner *v1.Website) error {
	wanted := map[string]string{"target": target}
	tags := map[string]string{"owner": client.ObjectKeyFromObject(owner).String()}
	now, err := d.records.Get(ctx, host)
	switch {
	case errors.Is(err, sim.ErrNotFound):
		_, err = d.records.Create(ctx, sim.Creation{Name: host, Tags: tags, Spec: wanted, Owner: owner.UID})
		return err
	case err != nil:
		return err
	case now.Tags["owner"] != tags["owner"]:
		return ErrHostTaken
	case now.Spec["target"] != target:
		return d.records.Update(ctx, host, wanted)
	}
	return nil
}

func (d simDNS) Remove(ctx context.Context, host string, owner *v1.Website) error {
	now, err := d.records.Get(ctx, host)
	if err == nil && now.Tags["owner"] == client.ObjectKeyFromObject(owner).String() {
		err = d.records.Delete(ctx, host)
	}
	if errors.Is(err, sim.ErrNotFound) {
		return nil
	}
	return err
}

func newShop() *v1.Website {
	return &v1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Spec: v1.WebsiteSpec{
		Host: "shop.example.com", Image: "nginx:1.29", Replicas: new(int32(3)), Content: map[string]string{"index.html": "Open"}, CredentialsSecret: "credentials",
	}}
}

func newSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "credentials"}, Data: map[string][]byte{"DB_PASSWORD": []byte("s3cr3t-one")}}
}

func simScheme(t *testing.T) *runtime.Scheme { return exampletest.NewScheme(t, v1.AddToScheme) }
