// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
)

// audits returns the audits of the servers that Streams use, for "ctrlkit orphans". Consumers are
// not audited: they go with their streams.
func (s *servers) audits(c client.Client, live client.Reader) func(ctx context.Context) ([]external.SystemAudit, error) {
	return eachServer(s, c, live, func(system *auditedServer) external.SystemAudit {
		return external.AuditOf(system.address, system, system.objects)
	})
}

// imports returns the streams of these servers that no object has, for "ctrlkit import". Calls are
// those of the controller of Streams.
func (s *servers) imports(c client.Client, live client.Reader, calls external.Calls[*v1.Stream]) func(ctx context.Context) ([]external.SystemImport, error) {
	return eachServer(s, c, live, func(system *auditedServer) external.SystemImport {
		return external.ImportOf(system.address, system, system.objects, calls)
	})
}

// eachServer returns what is made of each server that Streams use.
func eachServer[V any](s *servers, c client.Client, live client.Reader, of func(system *auditedServer) V) func(ctx context.Context) ([]V, error) {
	return func(ctx context.Context) ([]V, error) {
		all, err := streamsBy(ctx, live, s.address)
		if err != nil {
			return nil, err
		}
		var made []V
		for _, address := range slices.Sorted(maps.Keys(all)) {
			made = append(made, of(newAuditedServer(s, c, live, address, all[address])))
		}
		return made, nil
	}
}

// streamsBy returns all Streams, by the address of their server. The standard one is always there.
func streamsBy(ctx context.Context, live client.Reader, address func(v1.Server) string) (map[string][]*v1.Stream, error) {
	var list v1.StreamList
	if err := live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing Streams: %w", err)
	}
	all := map[string][]*v1.Stream{address(v1.Server{}): nil}
	for i := range list.Items {
		at := address(list.Items[i].Spec.Server)
		all[at] = append(all[at], &list.Items[i])
	}
	return all, nil
}

// An auditedServer lists the streams of the accounts of a server. The names of streams are unique in an
// account.
type auditedServer struct {
	*servers
	client      client.Client
	live        client.Reader
	address     string
	credentials map[client.ObjectKey]bool // the Secrets of Streams, and whether there is a Stream

	mu       sync.Mutex // for both below
	accounts map[client.ObjectKey]string
	first    map[string]client.ObjectKey // the Secret by which the streams of an account were listed
}

var _ external.Importer[*v1.Stream] = (*auditedServer)(nil)

func newAuditedServer(s *servers, c client.Client, live client.Reader, address string, streams []*v1.Stream) *auditedServer {
	a := &auditedServer{servers: s, client: c, live: live, address: address, accounts: map[client.ObjectKey]string{}, first: map[string]client.ObjectKey{}}
	a.credentials = map[client.ObjectKey]bool{{}: false} // a client without credentials may have an account, too
	for _, stream := range streams {
		a.credentials[secretOf(stream)] = true
	}
	return a
}

// secretOf returns the Secret of a Stream, an empty key if it has none.
func secretOf(stream *v1.Stream) client.ObjectKey {
	if stream.Spec.Server.CredentialsSecret == "" {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: stream.Namespace, Name: stream.Spec.Server.CredentialsSecret}
}

// objects returns the Streams on the server, with their accounts.
func (a *auditedServer) objects(ctx context.Context) ([]external.Holder, error) {
	all, err := streamsBy(ctx, a.live, a.servers.address)
	if err != nil {
		return nil, err
	}
	var holders []external.Holder
	for _, stream := range all[a.address] {
		account, err := a.account(ctx, secretOf(stream))
		if err != nil {
			return nil, err
		}
		holders = append(holders, external.Holder{Object: stream, Scope: account})
	}
	return holders, nil
}

// account returns the account that credentials are for: several Secrets may be for one.
func (a *auditedServer) account(ctx context.Context, with client.ObjectKey) (string, error) {
	a.mu.Lock()
	account, known := a.accounts[with]
	a.mu.Unlock()
	if known {
		return account, nil
	}
	lease, err := a.connect(ctx, with)
	if err != nil {
		return "", err
	}
	account, err = lease.Conn.Account(ctx)
	if err := errors.Join(err, lease.Release()); err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.accounts[with] = account
	return account, nil
}

func (a *auditedServer) connect(ctx context.Context, with client.ObjectKey) (*external.Lease[Server], error) {
	return a.lease(ctx, a.client, with.Namespace, v1.Server{Address: a.address, CredentialsSecret: with.Name})
}

// List implements [external.Lister].
func (a *auditedServer) List(ctx context.Context) (all []external.Resource, err error) {
	listed := map[string]bool{}
	for _, with := range slices.SortedFunc(maps.Keys(a.credentials), func(a, b client.ObjectKey) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	}) {
		account, err := a.account(ctx, with)
		switch {
		case err != nil && !a.credentials[with] && failure.Classify(err).Class == failure.ClassForbidden:
			continue // the server has no account for clients without credentials
		case err != nil:
			return nil, err
		case listed[account]:
			continue
		}
		listed[account] = true
		a.mu.Lock()
		a.first[account] = with
		a.mu.Unlock()
		if all, err = a.listWith(ctx, with, account, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (a *auditedServer) listWith(ctx context.Context, with client.ObjectKey, account string, all []external.Resource) ([]external.Resource, error) {
	lease, err := a.connect(ctx, with)
	if err != nil {
		return nil, err
	}
	streams, err := lease.Conn.Streams(ctx)
	for _, config := range streams {
		all = append(all, external.Resource{Scope: account, ID: config.Name, Owner: config.Metadata[ownerKey]})
	}
	return all, errors.Join(err, lease.Release())
}

// Import implements [external.Importer]. The object is named after the stream. If the stream was found
// by the credentials of a Secret, it is in the namespace of that.
func (a *auditedServer) Import(ctx context.Context, r external.Resource) (*v1.Stream, error) {
	a.mu.Lock()
	with := a.first[r.Scope]
	a.mu.Unlock()
	server := v1.Server{CredentialsSecret: with.Name}
	if a.address != a.servers.address(server) {
		server.Address = a.address
	}
	lease, err := a.connect(ctx, with)
	if err != nil {
		return nil, err
	}
	c := &streamClient{lease: lease, address: a.address}
	obj := &v1.Stream{ObjectMeta: metav1.ObjectMeta{Namespace: with.Namespace, Name: strings.Trim(strings.ReplaceAll(strings.ToLower(r.ID), "_", "-"), "-")}}
	obj.Spec = v1.StreamSpec{Name: r.ID, Server: server}
	if err := errors.Join(external.Describe(ctx, c, obj, r.ID), c.Close()); err != nil {
		return nil, err
	}
	spec, now := &obj.Spec, c.now
	if len(now.Subjects) == 0 {
		return nil, errors.New("it has no subjects, as a mirror, which a Stream can't be")
	}
	spec.Subjects, spec.Replicas = slices.Sorted(slices.Values(now.Subjects)), int32(now.Replicas) //nolint:gosec // at most 5
	spec.Retention, spec.Storage, spec.Discard = v1.Retention(wordOf(retentions, now.Retention)), v1.Storage(wordOf(storages, now.Storage)), v1.Discard(wordOf(discards, now.Discard))
	return obj, nil
}
