// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// consumerName returns the name of the consumer of an object.
func consumerName(obj *v1.Consumer) (string, error) {
	if obj.Spec.Name != "" {
		return obj.Spec.Name, nil
	}
	return names.NameOf(obj)
}

// newStreamReference returns the reference of Consumers to their Streams.
func newStreamReference() *reference.Reference[*v1.Consumer, *v1.Stream] {
	return reference.New(reference.Options[*v1.Consumer, *v1.Stream]{
		Name:   "stream", // the condition is v1.ConditionStreamReady
		Target: func(obj *v1.Consumer) reference.Target { return reference.Target{Name: obj.Spec.Stream} },
		NotReady: func(stream *v1.Stream) string {
			if external.IDOf(stream) == "" || !meta.IsStatusConditionTrue(stream.Status.Conditions, external.ConditionAvailable) {
				return "its stream is not available"
			}
			return ""
		},
	})
}

// consumers connects to the servers of Consumers, which are those of their Streams.
type consumers struct {
	*servers
	streamOf *reference.Reference[*v1.Consumer, *v1.Stream]
}

// watchesOfCredentials make a change of the credentials reconcile the Consumers of the Streams that
// name them.
func watchesOfCredentials() []step.Watch {
	return []step.Watch{{Object: &corev1.Secret{}, NamedBy: func(obj client.Object) []client.ObjectKey {
		if server := obj.(*v1.Consumer).Status.Server; server != nil { //nolint:errcheck // it has the type
			return []client.ObjectKey{{Name: server.CredentialsSecret}}
		}
		return nil
	}}}
}

// Connect implements [external.Connector]: it connects to the server of the Stream. The status says
// which one that was, for a Consumer that is deleted when its Stream was removed by force.
func (c consumers) Connect(ctx context.Context, req *step.Request[*v1.Consumer]) (external.Client[*v1.Consumer], error) {
	status := &req.Object.Status
	stream, err := c.streamOf.Get(ctx, req)
	if err == nil && external.IDOf(stream) == "" {
		err = ctrlkit.Wait("Stream " + stream.Namespace + "/" + stream.Name + " to be available")
	}
	switch {
	case err == nil:
		status.Stream = external.IDOf(stream)
		status.Server = &v1.Server{Address: c.address(stream.Spec.Server), CredentialsSecret: stream.Spec.Server.CredentialsSecret}
	case status.Server == nil:
		return nil, err
	}
	lease, err := c.lease(ctx, req.Client, req.Object.Namespace, *status.Server)
	if err != nil {
		return nil, err
	}
	return &consumerClient{lease: lease, address: status.Server.Address, stream: status.Stream}, nil
}

// consumerClient is the client of one consumer.
type consumerClient struct {
	lease           *external.Lease[Server]
	address, stream string
	now             jetstream.ConsumerConfig // as it was observed
}

var (
	_ external.Client[*v1.Consumer]    = (*consumerClient)(nil)
	_ external.Connector[*v1.Consumer] = consumers{}
)

// isGone reports whether an error says that there is no consumer: it goes with its stream.
func isGone(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// Observe implements [external.Client].
func (c *consumerClient) Observe(ctx context.Context, obj *v1.Consumer, id string) (external.Observation, error) {
	obj.Status.Consumer = id
	now, err := c.lease.Conn.Consumer(ctx, c.stream, id)
	if isGone(err) {
		return external.Observation{State: external.Absent}, nil
	} else if err != nil {
		return external.Observation{}, classified(err)
	}
	c.now = now
	seen := external.Observation{State: external.UpToDate, Owner: now.Metadata[ownerKey], Drift: driftOf(consumerFields(now, consumerConfig(obj, now)))}
	if len(seen.Drift) > 0 {
		seen.State = external.Drifted
	}
	seen.Connection = map[string][]byte{"address": []byte(c.address), "stream": []byte(c.stream), "consumer": []byte(id)}
	return seen, nil
}

// Create implements [external.Client].
func (c *consumerClient) Create(ctx context.Context, obj *v1.Consumer, creation external.Creation) (string, error) {
	err := c.lease.Conn.CreateConsumer(ctx, c.stream, consumerConfig(obj, jetstream.ConsumerConfig{Durable: creation.Name, AckPolicy: jetstream.AckExplicitPolicy}))
	if errors.Is(err, jetstream.ErrConsumerExists) {
		if now, getErr := c.lease.Conn.Consumer(ctx, c.stream, creation.Name); getErr == nil && now.Metadata[ownerKey] == external.OwnerOf(obj) {
			err = nil // an earlier call has created it, with another spec
		}
	}
	if answered(err) != nil {
		return "", external.Refused(classified(err))
	}
	return creation.Name, err
}

// Update implements [external.Client].
func (c *consumerClient) Update(ctx context.Context, obj *v1.Consumer, _ string) error {
	want := consumerConfig(obj, c.now)
	return updateError(c.lease.Conn.UpdateConsumer(ctx, c.stream, want), consumerFields(c.now, want))
}

// Delete implements [external.Client].
func (c *consumerClient) Delete(ctx context.Context, _ *v1.Consumer, id string) error {
	err := c.lease.Conn.DeleteConsumer(ctx, c.stream, id)
	if isGone(err) {
		return nil
	}
	return classified(err)
}

// Release implements [external.Releaser].
func (c *consumerClient) Release(ctx context.Context, _ *v1.Consumer, _ string) error {
	c.now.Metadata = withoutOwner(c.now.Metadata)
	return classified(c.lease.Conn.UpdateConsumer(ctx, c.stream, c.now))
}

// Close releases the connection.
func (c *consumerClient) Close() error { return c.lease.Release() }

var deliverPolicies = map[v1.DeliverPolicy]jetstream.DeliverPolicy{
	v1.DeliverAll: jetstream.DeliverAllPolicy, v1.DeliverNew: jetstream.DeliverNewPolicy, v1.DeliverLast: jetstream.DeliverLastPolicy,
}

// consumerConfig returns base as a spec wants it. What the spec does not have stays.
func consumerConfig(obj *v1.Consumer, base jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	spec := &obj.Spec
	base.FilterSubject, base.FilterSubjects = "", slices.Clone(spec.FilterSubjects)
	base.DeliverPolicy = deliverPolicies[spec.DeliverPolicy]
	if spec.AckWait != nil {
		base.AckWait = spec.AckWait.Duration
	}
	if spec.MaxDeliver != 0 {
		base.MaxDeliver = int(spec.MaxDeliver)
	}
	base.Metadata = withOwner(base.Metadata, obj)
	return base
}

// consumerFields returns the fields of a spec in two configurations.
func consumerFields(now, want jetstream.ConsumerConfig) []field {
	return []field{
		{"spec.filterSubjects", sorted(filtersOf(now)), sorted(filtersOf(want))},
		{"spec.deliverPolicy", wordOf(deliverPolicies, now.DeliverPolicy), wordOf(deliverPolicies, want.DeliverPolicy)},
		{"spec.ackWait", now.AckWait.String(), want.AckWait.String()},
		{"spec.maxDeliver", fmt.Sprint(now.MaxDeliver), fmt.Sprint(want.MaxDeliver)},
		{"metadata.uid", now.Metadata[ownerKey], want.Metadata[ownerKey]},
	}
}

// filtersOf returns the filters of a consumer, which has one of them in another field.
func filtersOf(config jetstream.ConsumerConfig) []string {
	if config.FilterSubject != "" {
		return []string{config.FilterSubject}
	}
	return config.FilterSubjects
}
