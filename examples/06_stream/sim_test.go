// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The operator ends in the same state whatever goes wrong, in the cluster and in NATS: each stream
// and consumer is created once, and none is left.
func TestSurvivesEverything(t *testing.T) {
	t.Run("a stream", func(t *testing.T) {
		exampletest.Simulate(t, streamWorkload(t),
			sim.WithoutFault(sim.FaultRecreate, "a Secret that a Stream uses stays until its user deletes that"),
			sim.WithoutFault(sim.FaultDeleteAndCreate, "a Secret that a Stream uses stays until its user deletes that"))
	})
	t.Run("without credentials", func(t *testing.T) {
		w := newWorkload(t)
		w.Script = func(w *sim.World) {
			stream := newStream("")
			w.Create(stream)
			w.Settle()
			sim.Update(w, stream, func(s *v1.Stream) { s.Spec.Subjects = []string{"orders.>", "bills.>"} })
			w.Settle()
			w.Delete(stream)
			w.Settle()
		}
		exampletest.Simulate(t, w)
	})
	t.Run("a consumer", func(t *testing.T) {
		exampletest.Simulate(t, consumerWorkload(t),
			sim.WithoutFault(sim.FaultRecreate, "a Stream that has a Consumer stays until its user deletes that"),
			sim.WithoutFault(sim.FaultDeleteAndCreate, "a Stream that has a Consumer stays until its user deletes that"))
	})
}

// A user may change each field, and change it back.
func TestTransitions(t *testing.T) {
	for name, workload := range map[string]sim.Workload{"a stream": streamWorkload(t), "a consumer": consumerWorkload(t)} {
		t.Run(name, func(t *testing.T) {
			const stays = "a Secret that a Stream uses, a Stream that has a Consumer, and what can't be deleted in NATS stay; what is created again has no Secret of another name"
			exampletest.Simulate(t, workload, sim.WithTransitions(""), sim.WithFaults(3),
				sim.WithoutFault(sim.FaultRecreate, stays), sim.WithoutFault(sim.FaultDeleteAndCreate, stays),
				sim.ByDesign(`^(same-as-fresh|recovers): stream/orders spec\.max`, "a limit that the Stream does not set is left as it is, and copied"),
				sim.ByDesign(`^(same-as-fresh|recovers): .* spec\.connectionSecret`, "a Secret of another name stays until the object is gone"),
				sim.ByDesign(`^same-end: stream/orders spec\.server\.credentialsSecret: wrong`, "what is in NATS, and as what, is unknown without credentials"))
		})
	}
}

// streamWorkload is the life of a Stream with credentials.
func streamWorkload(t *testing.T) sim.Workload {
	w := newWorkload(t)
	w.Script = func(w *sim.World) {
		stream, secret := newStream(""), newCredentials("s3cr3t-one")
		stream.Spec.Server = v1.Server{Address: "nats://sim.invalid", CredentialsSecret: secret.Name}
		w.Create(stream) // it waits for its credentials
		w.Create(secret)
		w.Settle()
		sim.Update(w, stream, func(s *v1.Stream) { s.Spec.Subjects = []string{"orders.>", "bills.>"} })
		sim.Update(w, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("s3cr3t-two") })
		w.Settle()
		w.Delete(secret) // it stays as long as the Stream
		w.Delete(stream)
		w.Settle()
	}
	return w
}

// consumerWorkload is the life of a Consumer and its Stream.
func consumerWorkload(t *testing.T) sim.Workload {
	w := newWorkload(t)
	w.Script = func(w *sim.World) {
		stream, consumer := newStream(""), newConsumer("")
		stream.Spec.Server.Address = "nats://sim.invalid"
		w.Create(consumer) // it waits for its Stream
		w.Create(stream)
		w.Settle()
		sim.Update(w, consumer, func(c *v1.Consumer) { c.Spec.MaxDeliver = 5 })
		w.Settle()
		w.Delete(stream, consumer) // in NATS, the consumer is deleted first
		w.Settle()
	}
	return w
}

func newWorkload(t *testing.T) sim.Workload {
	return sim.Workload{
		Scheme: simScheme(t), CRDs: []string{"config/crd/bases"},
		Externals: []sim.External{{Name: "streams", Identity: sim.IdentityName}, {Name: "consumers", Identity: sim.IdentityName}},
		Quiet:     15 * time.Minute, // longer than the time after which a stream is observed again
		Normalize: withoutIntent,
		Operator: func(ctx context.Context, p *sim.Process) error {
			mgr, err := jetStream(settings{
				poll: 10 * time.Minute,
				dial: func(context.Context, string, map[string][]byte) (Server, error) {
					return simServer{p.External("streams"), p.External("consumers")}, nil
				},
			}).Manager(p.Config(), p.ManagerOptions())
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
	}
}

// withoutIntent leaves out when a creation was begun, and by which process.
func withoutIntent(obj *sim.Object) bool {
	unstructured.RemoveNestedField(obj.Content, "metadata", "annotations", external.IntentAnnotation)
	return true
}

// simServer keeps streams and consumers in systems of the simulator, where calls fail, and what was
// created outlives crashes.
type simServer struct{ streams, consumers *sim.ExternalClient }

var _ Server = simServer{}

// encoded returns a configuration as the specification and the tags of a resource.
func encoded(name string, config any, metadata map[string]string) sim.Creation {
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // it has no channels
	}
	return sim.Creation{Name: name, Spec: map[string]string{"config": string(text)}, Owner: types.UID(metadata[ownerKey])}
}

// decoded reads a configuration. Changed says that another client has changed it.
func decoded(r sim.Resource, config any) (changed bool, err error) {
	text, changed := strings.CutSuffix(r.Spec["config"], " (drifted)")
	return changed, json.Unmarshal([]byte(text), config)
}

// as returns an error of the simulator as NATS would say it.
func as(err, notFound, exists error) error {
	switch {
	case errors.Is(err, sim.ErrNotFound):
		return fmt.Errorf("%w", notFound)
	case errors.Is(err, sim.ErrExists):
		return fmt.Errorf("%w", exists)
	}
	return err
}

func (s simServer) Stream(ctx context.Context, name string) (config jetstream.StreamConfig, err error) {
	r, err := s.streams.Get(ctx, name)
	if err != nil {
		return config, as(err, jetstream.ErrStreamNotFound, nil)
	}
	changed, err := decoded(r, &config)
	if changed {
		config.Subjects = append(config.Subjects, "drifted")
	}
	return config, err
}

func (s simServer) CreateStream(ctx context.Context, config jetstream.StreamConfig) error {
	_, err := s.streams.Create(ctx, encoded(config.Name, config, config.Metadata))
	return as(err, nil, jetstream.ErrStreamNameAlreadyInUse)
}

func (s simServer) UpdateStream(ctx context.Context, config jetstream.StreamConfig) error {
	return as(s.streams.Update(ctx, config.Name, encoded("", config, nil).Spec), jetstream.ErrStreamNotFound, nil)
}

func (simServer) Account(context.Context) (string, error) { return "", nil }

func (s simServer) Streams(ctx context.Context) ([]jetstream.StreamConfig, error) {
	all, err := s.streams.List(ctx)
	configs := make([]jetstream.StreamConfig, len(all))
	for i, r := range all {
		if _, err := decoded(r, &configs[i]); err != nil {
			return nil, err
		}
	}
	return configs, err
}

func (s simServer) DeleteStream(ctx context.Context, name string) error {
	return as(s.streams.Delete(ctx, name), jetstream.ErrStreamNotFound, nil)
}

func (s simServer) Consumer(ctx context.Context, stream, name string) (config jetstream.ConsumerConfig, err error) {
	r, err := s.consumers.Get(ctx, stream+"/"+name)
	if err != nil {
		return config, as(err, jetstream.ErrConsumerNotFound, nil)
	}
	changed, err := decoded(r, &config)
	if changed {
		config.MaxDeliver = 99
	}
	return config, err
}

// CreateConsumer fails without a stream, as NATS does.
func (s simServer) CreateConsumer(ctx context.Context, stream string, config jetstream.ConsumerConfig) error {
	if _, err := s.Stream(ctx, stream); err != nil {
		return err
	}
	_, err := s.consumers.Create(ctx, encoded(stream+"/"+config.Durable, config, config.Metadata))
	return as(err, nil, jetstream.ErrConsumerExists)
}

func (s simServer) UpdateConsumer(ctx context.Context, stream string, config jetstream.ConsumerConfig) error {
	return as(s.consumers.Update(ctx, stream+"/"+config.Durable, encoded("", config, nil).Spec), jetstream.ErrConsumerDoesNotExist, nil)
}

func (s simServer) DeleteConsumer(ctx context.Context, stream, name string) error {
	return as(s.consumers.Delete(ctx, stream+"/"+name), jetstream.ErrConsumerNotFound, nil)
}

func (simServer) Close() error { return nil }

func newCredentials(token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nats-credentials"}, Data: map[string][]byte{"token": []byte(token)}}
}

func simScheme(t *testing.T) *runtime.Scheme { return exampletest.NewScheme(t, v1.AddToScheme) }
