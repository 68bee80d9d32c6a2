// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ctrlkit/ctrlkit/failure"
)

// A Server is a NATS server with JetStream, as far as the operator uses it. A stream or a consumer
// that does not exist is jetstream.ErrStreamNotFound or jetstream.ErrConsumerNotFound. All methods
// are safe for concurrent use.
type Server interface {
	Stream(ctx context.Context, name string) (jetstream.StreamConfig, error)
	CreateStream(ctx context.Context, config jetstream.StreamConfig) error
	UpdateStream(ctx context.Context, config jetstream.StreamConfig) error
	DeleteStream(ctx context.Context, name string) error
	Streams(ctx context.Context) ([]jetstream.StreamConfig, error)

	// Account returns the account in which the names of these streams are unique, empty for that of a
	// server without accounts.
	Account(ctx context.Context) (string, error)

	Consumer(ctx context.Context, stream, name string) (jetstream.ConsumerConfig, error)
	CreateConsumer(ctx context.Context, stream string, config jetstream.ConsumerConfig) error
	UpdateConsumer(ctx context.Context, stream string, config jetstream.ConsumerConfig) error
	DeleteConsumer(ctx context.Context, stream, name string) error

	Close() error
}

// A Dialer connects to a server. Credentials has the keys that v1.Server describes, and is nil
// without a Secret.
type Dialer func(ctx context.Context, address string, credentials map[string][]byte) (Server, error)

// natsServer is a connection to a real server.
type natsServer struct {
	conn *nats.Conn
	js   jetstream.JetStream
}

var _ Server = (*natsServer)(nil)

// dialNATS is the Dialer of real servers.
func dialNATS(_ context.Context, address string, credentials map[string][]byte) (Server, error) {
	authentication, err := authenticationOf(credentials)
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(address, append(authentication,
		nats.Name("ctrlkit 06_stream"),
		nats.Timeout(2*time.Second),
		// A connection that the pool has must not close itself: it reconnects for ever.
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		// Without a connection a request fails at once. A buffered one would arrive later, when the
		// reconcile that made it has given up.
		nats.ReconnectBufSize(-1))...)
	switch {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked):
		return nil, failure.Mark(fmt.Errorf("the server at %s refuses the credentials: %w", address, err),
			failure.WithClass(failure.ClassForbidden), failure.WithReason("CredentialsRefused"))
	case err != nil && strings.Contains(err.Error(), "signing nonce"): // the client has no error for that
		return nil, invalidCredentials("the key nats.creds has no credentials as nsc writes them")
	case err != nil:
		return nil, fmt.Errorf("connecting to the server at %s: %w", address, err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &natsServer{conn: conn, js: js}, nil
}

// authenticationOf returns the options for what a Secret has. An error has no values of it.
func authenticationOf(credentials map[string][]byte) ([]nats.Option, error) {
	user, token, file := credentials["username"], credentials["token"], credentials["nats.creds"]
	switch {
	case credentials == nil:
		return nil, nil
	case len(user) > 0:
		return []nats.Option{nats.UserInfo(string(user), string(credentials["password"]))}, nil
	case len(token) > 0:
		return []nats.Option{nats.Token(string(token))}, nil
	case len(file) > 0:
		return []nats.Option{nats.UserCredentialBytes(file)}, nil
	}
	return nil, invalidCredentials("there is none of the keys username, token and nats.creds: add one")
}

func invalidCredentials(problem string) error {
	return failure.Mark(errors.New(problem), failure.WithClass(failure.ClassInvalid), failure.WithReason("CredentialsInvalid"))
}

func (s *natsServer) Stream(ctx context.Context, name string) (jetstream.StreamConfig, error) {
	stream, err := s.js.Stream(ctx, name)
	if err != nil {
		return jetstream.StreamConfig{}, err
	}
	return stream.CachedInfo().Config, nil
}

func (s *natsServer) CreateStream(ctx context.Context, config jetstream.StreamConfig) error {
	_, err := s.js.CreateStream(ctx, config)
	return err
}

func (s *natsServer) UpdateStream(ctx context.Context, config jetstream.StreamConfig) error {
	_, err := s.js.UpdateStream(ctx, config)
	return err
}

func (s *natsServer) DeleteStream(ctx context.Context, name string) error {
	return s.js.DeleteStream(ctx, name)
}

func (s *natsServer) Streams(ctx context.Context) (all []jetstream.StreamConfig, err error) {
	list := s.js.ListStreams(ctx)
	for stream := range list.Info() {
		all = append(all, stream.Config)
	}
	return all, list.Err()
}

func (s *natsServer) Account(ctx context.Context) (string, error) {
	const subject = "$SYS.REQ.USER.INFO"
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := s.conn.RequestWithContext(ctx, subject, nil)
	if err != nil {
		return "", fmt.Errorf("asking for the account of the user, who has to be allowed to publish to %s: %w", subject, err)
	}
	var info struct {
		Data struct{ Account string } `json:"data"`
	}
	if err := json.Unmarshal(answer.Data, &info); err != nil || info.Data.Account == "" {
		return "", fmt.Errorf("the server does not say which account the user has: %.200s", answer.Data)
	}
	if info.Data.Account == "$G" { // the global one
		return "", nil
	}
	return info.Data.Account, nil
}

func (s *natsServer) Consumer(ctx context.Context, stream, name string) (jetstream.ConsumerConfig, error) {
	consumer, err := s.js.Consumer(ctx, stream, name)
	if err != nil {
		return jetstream.ConsumerConfig{}, err
	}
	return consumer.CachedInfo().Config, nil
}

func (s *natsServer) CreateConsumer(ctx context.Context, stream string, config jetstream.ConsumerConfig) error {
	_, err := s.js.CreateConsumer(ctx, stream, config)
	return err
}

func (s *natsServer) UpdateConsumer(ctx context.Context, stream string, config jetstream.ConsumerConfig) error {
	_, err := s.js.UpdateConsumer(ctx, stream, config)
	return err
}

func (s *natsServer) DeleteConsumer(ctx context.Context, stream, name string) error {
	return s.js.DeleteConsumer(ctx, stream, name)
}

func (s *natsServer) Close() error {
	s.conn.Close()
	return nil
}

// refusals are the error codes of a server that will never do what it was asked for, although the
// status beside them is 500.
var refusals = []jetstream.ErrorCode{
	10012, // a consumer can't be created or changed so
	10052, // a stream can't be created or changed so
	10074, // there are not so many replicas
}

// answered returns the error with which the server has answered that it does not do something; nil
// if it may do it later, or if there is no answer.
func answered(err error) *jetstream.APIError {
	var answer jetstream.JetStreamError
	if !errors.As(err, &answer) || answer.APIError() == nil {
		return nil
	}
	if api := answer.APIError(); api.Code < 500 || slices.Contains(refusals, api.ErrorCode) {
		return api
	}
	return nil
}

// classified adds to an error of a server what it means: that a person has to change the object, or
// that something else comes first.
func classified(err error) error {
	api := answered(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrNotPullConsumer):
		return failure.Mark(err, failure.WithClass(failure.ClassTerminal))
	case api == nil:
		return err
	case api.Code == 404:
		return failure.Mark(err, failure.WithClass(failure.ClassNotFound))
	}
	return failure.Mark(err, failure.WithClass(failure.ClassInvalid))
}

// ReasonImmutable is the reason for a field of a spec that NATS can't change.
const ReasonImmutable = "FieldIsImmutable"

// immutable are fields that NATS can't change, by what the server says then.
var immutable = []struct{ words, path string }{
	{"can not change storage type", "spec.storage"},
	{"can not change retention policy", "spec.retention"},
	{"deliver policy can not be updated", "spec.deliverPolicy"},
}

// A field is one of a spec, with the value that the server has, and the one that the spec wants.
type field struct{ path, now, want string }

// driftOf returns the paths of the fields that differ.
func driftOf(fields []field) []string {
	var paths []string
	for _, f := range fields {
		if f.now != f.want {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// updateError returns the error of an update. If the server can't change a field, the error names
// the field, and is terminal.
func updateError(err error, fields []field) error {
	if answered(err) == nil {
		return classified(err)
	}
	for _, known := range immutable {
		for _, f := range fields {
			if f.path == known.path && strings.Contains(err.Error(), known.words) {
				text := fmt.Errorf("NATS can't change %s from %s to %s: set it back to %s, or create another object", f.path, f.now, f.want, f.now)
				return failure.Terminal(text, ReasonImmutable, "")
			}
		}
	}
	return classified(fmt.Errorf("changing %s: %w", strings.Join(driftOf(fields), ", "), err))
}
