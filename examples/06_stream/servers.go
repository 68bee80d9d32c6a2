// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
)

// servers are the connections of the operator. Objects with the same address and Secret share one.
type servers struct {
	standard string // the address for objects that name none
	dial     Dialer
	pool     external.Pool[Server]
}

func newServers(standard string, dial Dialer) *servers {
	return &servers{standard: standard, dial: dial, pool: external.Pool[Server]{Close: Server.Close}}
}

func (s *servers) address(server v1.Server) string { return cmp.Or(server.Address, s.standard) }

// lease returns a connection, with the credentials of a Secret in a namespace.
func (s *servers) lease(ctx context.Context, c client.Client, namespace string, server v1.Server) (*external.Lease[Server], error) {
	var secret corev1.Secret // without credentials it stays empty
	address, key := s.address(server), client.ObjectKey{Namespace: namespace, Name: server.CredentialsSecret}
	if key.Name != "" {
		err := c.Get(ctx, key, &secret)
		switch {
		case apierrors.IsNotFound(err):
			err = fmt.Errorf("there is no Secret %s: create it with the keys username and password, or token, or nats.creds", key)
			return nil, failure.Mark(err, failure.WithClass(failure.ClassNotFound), failure.WithReason("CredentialsMissing"))
		case err != nil:
			return nil, fmt.Errorf("reading Secret %s: %w", key, err)
		case secret.Data == nil:
			secret.Data = map[string][]byte{} // credentials are wanted
		}
	}
	lease, err := s.pool.Get(ctx, address+" "+key.String(), string(secret.UID)+"/"+secret.ResourceVersion, func(ctx context.Context) (Server, error) {
		return s.dial(ctx, address, secret.Data)
	})
	switch {
	case err != nil && key.Name != "":
		return nil, fmt.Errorf("with the credentials of Secret %s: %w", key, err)
	case err != nil:
		return nil, err
	}
	return &lease, nil
}
