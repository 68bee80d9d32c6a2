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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/policy"
)

const (
	checkStreams     = "streams as the Streams want them"
	checkConnections = "connection Secrets"
	checkNoStream    = "streams without a Stream"
)

// streams are the Streams of examples/06_stream. Every second one names its stream.
type streams struct {
	*population
	system *system
	most   []int64 // messages, by object
}

func newStreams(c client.WithWatch, o *options, s *system) subject {
	all := &streams{population: newPopulation(c, o, "Stream", &v1.StreamList{}), system: s, most: make([]int64, o.objects)}
	all.details = all
	for i := range all.most {
		all.renew(i)
	}
	return all
}

func (*streams) checks() []string { return []string{checkStreams, checkConnections, checkNoStream} }

func (s *streams) renew(i int) { s.most[i] = 1 + s.random.Int64N(1000) }

func subjectOf(i int) string { return fmt.Sprintf("soak.%d.>", i) }

func (s *streams) object(i int) client.Object {
	obj := &v1.Stream{ObjectMeta: name("soak", i), Spec: v1.StreamSpec{
		Subjects: []string{subjectOf(i)}, Storage: v1.StorageMemory, MaxMessages: new(s.most[i]), ConnectionSecret: name("connection", i).Name,
	}}
	if i%2 == 1 {
		obj.Spec.Name = strings.ToUpper(obj.Name)
	}
	return obj
}

func (*streams) prepare(context.Context, int) error { return nil }

func (s *streams) edit(i int, exists bool, k int) (edit, bool) {
	switch {
	case !exists || k >= 72:
		return edit{}, false
	case k < 40:
		s.renew(i)
		return edit{what: fmt.Sprintf("at most %d messages", s.most[i]), apply: patching(s.object(i), `{"spec":{"maxMessages":%d}}`, s.most[i])}, true
	case k < 50:
		secret := &corev1.Secret{ObjectMeta: name("connection", i)}
		return edit{what: "Secret deleted", apply: func(ctx context.Context, c client.Client) error { return client.IgnoreNotFound(c.Delete(ctx, secret)) }}, true
	case k < 62:
		return edit{what: "stream changed by another client", apply: func(ctx context.Context, c client.Client) error {
			return s.interfere(ctx, c, i, func(js jetstream.JetStream, config jetstream.StreamConfig) error {
				config.MaxMsgs = 4711
				_, err := js.UpdateStream(ctx, config)
				return err
			})
		}}, true
	}
	return edit{what: "stream deleted by another client", apply: func(ctx context.Context, c client.Client) error {
		return s.interfere(ctx, c, i, func(js jetstream.JetStream, config jetstream.StreamConfig) error {
			return js.DeleteStream(ctx, config.Name)
		})
	}}, true
}

// interfere does something to the stream of an object, if there is one, and requests a reconcile:
// no watch reports what is changed on the server.
func (s *streams) interfere(ctx context.Context, c client.Client, i int, do func(jetstream.JetStream, jetstream.StreamConfig) error) error {
	obj := &v1.Stream{ObjectMeta: name("soak", i)}
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	js, stop, err := s.connect()
	if err != nil {
		return err
	}
	defer stop()
	stream, err := js.Stream(ctx, obj.Status.Stream)
	if err == nil {
		err = do(js, stream.CachedInfo().Config)
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, jetstream.ErrInvalidStreamName) && !errors.Is(err, jetstream.ErrStreamNameRequired) {
		return err
	}
	return patching(obj, `{"metadata":{"annotations":{%q:%q}}}`, policy.ReconcileNowAnnotation, time.Now().Format(time.RFC3339Nano))(ctx, c)
}

func (s *streams) connect() (js jetstream.JetStream, stop func(), err error) {
	conn, err := nats.Connect("nats://" + s.system.direct)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the NATS server: %w", err)
	}
	js, err = jetstream.New(conn)
	return js, conn.Close, err
}

func (*streams) want(int) readiness { return readiness{ready: true} }

func (*streams) problem(_ int, obj client.Object) string {
	got := obj.(*v1.Stream) //nolint:errcheck // nothing else is listed
	if got.Status.ObservedGeneration != got.Generation {
		return fmt.Sprintf("the status is about generation %d, want %d", got.Status.ObservedGeneration, got.Generation)
	}
	return ""
}

// check compares the streams of the server with the Streams, by their subjects. What no Stream has
// is an orphan.
func (s *streams) check(ctx context.Context, d *population, found *checks) error {
	js, stop, err := s.connect()
	if err != nil {
		return err
	}
	defer stop()
	there := map[string]jetstream.StreamConfig{}
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		there[strings.Join(info.Config.Subjects, ",")] = info.Config
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("listing the streams: %w", err)
	}
	var secrets corev1.SecretList
	if err := s.user.List(ctx, &secrets, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the Secrets: %w", err)
	}
	published := map[string]map[string][]byte{}
	for i := range secrets.Items {
		published[secrets.Items[i].Name] = secrets.Items[i].Data
	}
	for i := range s.most {
		connection := published[name("connection", i).Name]
		if !d.lanes[i].exists {
			if connection != nil {
				d.found(found, checkConnections, i, "Secret %s exists", name("connection", i).Name)
			}
			continue
		}
		config, exists := there[subjectOf(i)]
		delete(there, subjectOf(i))
		switch {
		case !exists:
			d.found(found, checkStreams, i, "there is no stream of %s", subjectOf(i))
			continue
		case config.MaxMsgs != s.most[i]:
			d.found(found, checkStreams, i, "stream %s keeps %d messages, want %d", config.Name, config.MaxMsgs, s.most[i])
		}
		if string(connection["stream"]) != config.Name {
			d.found(found, checkConnections, i, "it has the stream %q, want %q", connection["stream"], config.Name)
		}
	}
	for _, subjects := range slices.Sorted(maps.Keys(there)) {
		found.add(checkNoStream, violation{object: "stream " + there[subjects].Name, lane: noLane, evidence: "it should not exist"})
	}
	return nil
}
