// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
)

// Two Streams with their streams, and one that was deleted. What is done to the server is found,
// and by the check that is for it.
func TestChecksOfStreams(t *testing.T) {
	config := func(i int, most int64) jetstream.StreamConfig {
		return jetstream.StreamConfig{Name: fmt.Sprint("S", i), Subjects: []string{subjectOf(i)}, MaxMsgs: most, Storage: jetstream.MemoryStorage}
	}
	for title, test := range map[string]struct {
		plant func(ctx context.Context, js jetstream.JetStream) error
		want  string
	}{
		"all is well":      {func(context.Context, jetstream.JetStream) error { return nil }, ""},
		"a missing stream": {func(ctx context.Context, js jetstream.JetStream) error { return js.DeleteStream(ctx, "S0") }, checkStreams},
		"another limit": {func(ctx context.Context, js jetstream.JetStream) error {
			_, err := js.UpdateStream(ctx, config(1, 4711))
			return err
		}, checkStreams},
		"an orphaned stream": {func(ctx context.Context, js jetstream.JetStream) error {
			_, err := js.CreateStream(ctx, config(2, 5))
			return err
		}, checkNoStream},
	} {
		t.Run(title, func(t *testing.T) {
			system, err := startNATS()
			must(t, err)
			defer func() { must(t, system.close()) }()
			scheme, err := newScheme()
			must(t, err)
			api := fake.NewClientBuilder().WithScheme(scheme).Build()
			s := newStreams(api, &options{objects: 3}, system).(*streams)
			s.lanes[2] = lane{}
			js, stop, err := s.connect()
			must(t, err)
			defer stop()
			for i := range s.most[:2] {
				s.most[i] = 5
				_, err := js.CreateStream(t.Context(), config(i, 5))
				must(t, err)
				obj := s.object(i).(*v1.Stream)
				obj.Status.ObservedGeneration = 3
				must(t, api.Create(t.Context(), s.done(i, obj)))
				must(t, api.Create(t.Context(), &corev1.Secret{ObjectMeta: name("connection", i), Data: map[string][]byte{"stream": []byte(fmt.Sprint("S", i))}}))
			}
			must(t, test.plant(t.Context(), js))
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			checks, err := s.compare(t.Context(), time.Time{})
			must(t, err)
			if diff := cmp.Diff(want, violatedIn(checks)); diff != "" {
				t.Errorf("violated checks (-want +got):\n%s\n%+v", diff, checks)
			}
		})
	}
}
