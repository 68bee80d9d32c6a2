// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
)

// The clients do what package external relies on, against a NATS server.
func TestClientsKeepTheirContract(t *testing.T) {
	address := newServer(t)
	servers := newServers(address, dialNATS)
	t.Run("stream", func(t *testing.T) {
		ctrlkittest.CheckClient(t, ctrlkittest.ClientConfig[*v1.Stream]{
			Identity: external.ByName(streamName), StoresOwner: true,
			Connect: func(ctx context.Context, _ *v1.Stream) (external.Client[*v1.Stream], error) {
				lease, err := servers.lease(ctx, nil, "", v1.Server{})
				return &streamClient{lease: lease, address: address}, err
			},
			New: func() *v1.Stream {
				obj := newStream(uuid.NewUUID())
				obj.Spec.Name, obj.Spec.Subjects = "", []string{fmt.Sprintf("%s.>", obj.UID)}
				return obj
			},
			Drift:  func(obj *v1.Stream) { obj.Spec.MaxMessages = new(int64(5)) },
			Refuse: func(obj *v1.Stream) { obj.Spec.Replicas = 3 }, // of one server
			Names:  external.NameRules{Prefix: names.Prefix, MaxLength: 255},
		})
	})
	t.Run("consumer", func(t *testing.T) {
		lease := newLease(t, address)
		if _, err := (&streamClient{lease: lease}).Create(t.Context(), newStream("u1"), external.Creation{Name: "ORDERS"}); err != nil {
			t.Fatal(err)
		}
		ctrlkittest.CheckClient(t, ctrlkittest.ClientConfig[*v1.Consumer]{
			Identity: external.ByName(consumerName), StoresOwner: true,
			Connect: func(ctx context.Context, _ *v1.Consumer) (external.Client[*v1.Consumer], error) {
				lease, err := servers.lease(ctx, nil, "", v1.Server{})
				return &consumerClient{lease: lease, address: address, stream: "ORDERS"}, err
			},
			New: func() *v1.Consumer {
				obj := newConsumer(uuid.NewUUID())
				obj.Spec.Name = ""
				return obj
			},
			Drift:  func(obj *v1.Consumer) { obj.Spec.MaxDeliver = 5 },
			Refuse: func(obj *v1.Consumer) { obj.Spec.FilterSubjects = []string{"orders.paid", "orders.paid"} },
		})
	})
}
