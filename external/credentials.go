// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
)

// reasonCredentialsMissing is the reason of an error of [CredentialScopes.Get].
const reasonCredentialsMissing = "CredentialsMissing"

// CredentialScopes say in which Secret the credentials for an object are: in the one that it names, or
// else in that of its namespace, or else in that of the operator. An empty name is no scope.
type CredentialScopes struct {
	// Named is the Secret that the object names, in its namespace. If it is missing, no other is used.
	Named string
	// Namespace is the name of the Secret for all objects of a namespace that name none.
	Namespace string
	// Operator is the Secret for all others.
	Operator client.ObjectKey
}

// keys returns the Secrets that may have the credentials for an object in a namespace, the one that
// decides first.
func (s CredentialScopes) keys(namespace string) []client.ObjectKey {
	if s.Named != "" {
		return []client.ObjectKey{{Namespace: namespace, Name: s.Named}}
	}
	var keys []client.ObjectKey
	if s.Namespace != "" && namespace != "" {
		keys = append(keys, client.ObjectKey{Namespace: namespace, Name: s.Namespace})
	}
	if s.Operator.Name != "" {
		keys = append(keys, s.Operator)
	}
	return keys
}

// Get returns the Secret with the credentials for an object in a namespace. Reader is
// Request.Client: with the Secrets in Options.Reads, a nearer one that comes later reconciles the
// object. The error names the Secrets that were looked for.
func (s CredentialScopes) Get(ctx context.Context, reader client.Reader, namespace string) (*corev1.Secret, error) {
	keys := s.keys(namespace)
	for _, key := range keys {
		secret := &corev1.Secret{}
		err := reader.Get(ctx, key, secret)
		if err == nil {
			return secret, nil
		}
		if client.IgnoreNotFound(err) != nil { // a wider scope must not be used because a nearer one can't be read
			return nil, fmt.Errorf("reading the credentials in Secret %s: %w", key, err)
		}
	}
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.String()
	}
	return nil, failure.Mark(fmt.Errorf("there are no credentials: none of the Secrets %q exists", texts), failure.WithClass(failure.ClassNotFound),
		failure.WithReason(reasonCredentialsMissing), failure.WithRemedy("create one of them"))
}
