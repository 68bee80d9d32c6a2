// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// ownerKey is under which streams and consumers have the owner in their metadata.
const ownerKey = "nats.ctrlkit.dev/owner"

// names are the names of streams and consumers whose spec has none.
var names = external.NameRules{Prefix: "k8s-", MaxLength: 64}

// streamName returns the name of the stream of an object.
func streamName(obj *v1.Stream) (string, error) {
	if obj.Spec.Name != "" {
		return obj.Spec.Name, nil
	}
	return names.NameOf(obj)
}

// streams connects to the servers of Streams.
type streams struct{ *servers }

// newCredentialsReference returns the reference of Streams to the Secrets with their credentials.
func newCredentialsReference() *reference.Reference[*v1.Stream, *corev1.Secret] {
	return reference.New(reference.Options[*v1.Stream, *corev1.Secret]{
		Name: "credentials", // the condition is CredentialsReady
		Target: func(obj *v1.Stream) reference.Target {
			return reference.Target{Name: obj.Spec.Server.CredentialsSecret}
		},
	})
}

// Connect implements [external.Connector].
func (s streams) Connect(ctx context.Context, req *step.Request[*v1.Stream]) (external.Client[*v1.Stream], error) {
	lease, err := s.lease(ctx, req.Client, req.Object.Namespace, req.Object.Spec.Server)
	if err != nil {
		return nil, err
	}
	return &streamClient{lease: lease, address: s.address(req.Object.Spec.Server)}, nil
}

// streamClient is the client of one stream.
type streamClient struct {
	lease   *external.Lease[Server]
	address string
	now     jetstream.StreamConfig // as it was observed
}

var (
	_ external.LateInitializer[*v1.Stream] = (*streamClient)(nil)
	_ external.Releaser[*v1.Stream]        = (*streamClient)(nil)
	_ external.Connector[*v1.Stream]       = streams{}
)

// Observe implements [external.Client].
func (c *streamClient) Observe(ctx context.Context, obj *v1.Stream, id string) (external.Observation, error) {
	obj.Status.Address, obj.Status.Stream = c.address, id
	now, err := c.lease.Conn.Stream(ctx, id)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return external.Observation{State: external.Absent}, nil
	} else if err != nil {
		return external.Observation{}, classified(err)
	}
	c.now = now
	seen := external.Observation{State: external.UpToDate, Owner: now.Metadata[ownerKey], Drift: driftOf(streamFields(now, streamConfig(obj, now)))}
	if len(seen.Drift) > 0 {
		seen.State = external.Drifted
	}
	seen.Connection = map[string][]byte{"address": []byte(c.address), "stream": []byte(id), "subjects": []byte(strings.Join(now.Subjects, ","))}
	return seen, nil
}

// Create implements [external.Client].
func (c *streamClient) Create(ctx context.Context, obj *v1.Stream, creation external.Creation) (string, error) {
	err := c.lease.Conn.CreateStream(ctx, streamConfig(obj, jetstream.StreamConfig{Name: creation.Name}))
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		if now, getErr := c.lease.Conn.Stream(ctx, creation.Name); getErr == nil && now.Metadata[ownerKey] == external.OwnerOf(obj) {
			err = nil // an earlier call has created it, with another spec
		}
	}
	if answered(err) != nil {
		return "", external.Refused(classified(err))
	}
	return creation.Name, err
}

// Update implements [external.Client].
func (c *streamClient) Update(ctx context.Context, obj *v1.Stream, _ string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	want := streamConfig(obj, c.now)
	return updateError(c.lease.Conn.UpdateStream(ctx, want), streamFields(c.now, want))
}

// Delete implements [external.Client].
func (c *streamClient) Delete(ctx context.Context, _ *v1.Stream, id string) error {
	err := c.lease.Conn.DeleteStream(ctx, id)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return classified(err)
}

// Release implements [external.Releaser].
func (c *streamClient) Release(ctx context.Context, _ *v1.Stream, _ string) error {
	c.now.Metadata = withoutOwner(c.now.Metadata)
	return classified(c.lease.Conn.UpdateStream(ctx, c.now))
}

// LateInitialize implements [external.LateInitializer]: the limits of an adopted stream become
// those of the spec.
func (c *streamClient) LateInitialize(obj *v1.Stream) {
	spec := &obj.Spec
	if spec.MaxMessages == nil && c.now.MaxMsgs > 0 {
		spec.MaxMessages = new(c.now.MaxMsgs)
	}
	if spec.MaxBytes == nil && c.now.MaxBytes > 0 {
		spec.MaxBytes = new(c.now.MaxBytes)
	}
	if spec.MaxAge == nil && c.now.MaxAge > 0 {
		spec.MaxAge = &metav1.Duration{Duration: c.now.MaxAge}
	}
	if spec.MaxMessageBytes == nil && c.now.MaxMsgSize > 0 {
		spec.MaxMessageBytes = new(c.now.MaxMsgSize)
	}
}

// Close releases the connection.
func (c *streamClient) Close() error { return c.lease.Release() }

// The words of NATS for those of a spec.
var (
	retentions = map[v1.Retention]jetstream.RetentionPolicy{
		v1.RetentionLimits: jetstream.LimitsPolicy, v1.RetentionInterest: jetstream.InterestPolicy, v1.RetentionWorkQueue: jetstream.WorkQueuePolicy,
	}
	storages = map[v1.Storage]jetstream.StorageType{v1.StorageFile: jetstream.FileStorage, v1.StorageMemory: jetstream.MemoryStorage}
	discards = map[v1.Discard]jetstream.DiscardPolicy{v1.DiscardOld: jetstream.DiscardOld, v1.DiscardNew: jetstream.DiscardNew}
)

// streamConfig returns base as a spec wants it. What the spec does not have stays.
func streamConfig(obj *v1.Stream, base jetstream.StreamConfig) jetstream.StreamConfig {
	spec := &obj.Spec
	base.Subjects = slices.Clone(spec.Subjects)
	base.Retention, base.Storage, base.Discard = retentions[spec.Retention], storages[spec.Storage], discards[spec.Discard]
	base.Replicas = max(1, int(spec.Replicas))
	if spec.MaxMessages != nil {
		base.MaxMsgs = *spec.MaxMessages
	}
	if spec.MaxBytes != nil {
		base.MaxBytes = *spec.MaxBytes
	}
	if spec.MaxAge != nil {
		base.MaxAge = spec.MaxAge.Duration
	}
	if spec.MaxMessageBytes != nil {
		base.MaxMsgSize = *spec.MaxMessageBytes
	}
	base.Metadata = withOwner(base.Metadata, obj)
	return base
}

// withoutOwner returns metadata without an owner.
func withoutOwner(metadata map[string]string) map[string]string {
	metadata = maps.Clone(metadata)
	delete(metadata, ownerKey)
	return metadata
}

// withOwner returns metadata with the owner of what an object stands for.
func withOwner(metadata map[string]string, obj client.Object) map[string]string {
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = make(map[string]string, 1)
	}
	metadata[ownerKey] = external.OwnerOf(obj)
	return metadata
}

// streamFields returns the fields of a spec in two configurations.
func streamFields(now, want jetstream.StreamConfig) []field {
	return []field{
		{"spec.subjects", sorted(now.Subjects), sorted(want.Subjects)},
		{"spec.retention", wordOf(retentions, now.Retention), wordOf(retentions, want.Retention)},
		{"spec.storage", wordOf(storages, now.Storage), wordOf(storages, want.Storage)},
		{"spec.discard", wordOf(discards, now.Discard), wordOf(discards, want.Discard)},
		{"spec.replicas", fmt.Sprint(now.Replicas), fmt.Sprint(want.Replicas)},
		{"spec.maxMessages", fmt.Sprint(now.MaxMsgs), fmt.Sprint(want.MaxMsgs)},
		{"spec.maxBytes", fmt.Sprint(now.MaxBytes), fmt.Sprint(want.MaxBytes)},
		{"spec.maxAge", now.MaxAge.Round(time.Millisecond).String(), want.MaxAge.Round(time.Millisecond).String()},
		{"spec.maxMessageBytes", fmt.Sprint(now.MaxMsgSize), fmt.Sprint(want.MaxMsgSize)},
		{"metadata.uid", now.Metadata[ownerKey], want.Metadata[ownerKey]},
	}
}

// sorted returns subjects in a text: their order means nothing.
func sorted(subjects []string) string {
	return strings.Join(slices.Sorted(slices.Values(subjects)), ",")
}

// wordOf returns the word of a spec for one of NATS.
func wordOf[W ~string, V comparable](words map[W]V, value V) string {
	for word, v := range words {
		if v == value {
			return string(word)
		}
	}
	return fmt.Sprint(value)
}
