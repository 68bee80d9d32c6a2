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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
)

// An account is with which credentials streams are listed: those of a Secret in a namespace.
type account struct{ namespace, secret string }

// audits returns the audits of the servers that Streams use, for "ctrlkit orphans". Consumers are
// not audited: they go with their streams.
func (s *servers) audits(c client.Client, live client.Reader) func(ctx context.Context) ([]external.SystemAudit, error) {
	return eachServer(s, c, live, func(address string, system *auditedServer, streams streamLister) external.SystemAudit {
		return external.AuditOf(address, system, streams)
	})
}

// imports returns the streams of these servers that no object has, for "ctrlkit import".
func (s *servers) imports(c client.Client, live client.Reader) func(ctx context.Context) ([]external.SystemImport, error) {
	return eachServer(s, c, live, func(address string, system *auditedServer, streams streamLister) external.SystemImport {
		return external.ImportOf(address, system, streams)
	})
}

// A streamLister lists the Streams of a server.
type streamLister = func(ctx context.Context) ([]*v1.Stream, error)

// eachServer returns what is made of each server that Streams use.
func eachServer[V any](s *servers, c client.Client, live client.Reader, of func(address string, system *auditedServer, streams streamLister) V) func(ctx context.Context) ([]V, error) {
	return func(ctx context.Context) ([]V, error) {
		all, err := streamsBy(ctx, live, s.address)
		if err != nil {
			return nil, err
		}
		var made []V
		for _, address := range slices.Sorted(maps.Keys(all)) {
			system := &auditedServer{servers: s, client: c, address: address, accounts: map[account]bool{}}
			if len(all[address]) == 0 { // it is the standard one
				system.accounts[account{}] = true
			}
			for _, stream := range all[address] {
				system.accounts[account{stream.Namespace, stream.Spec.Server.CredentialsSecret}] = true
			}
			made = append(made, of(address, system, func(ctx context.Context) ([]*v1.Stream, error) {
				now, err := streamsBy(ctx, live, s.address)
				return now[address], err
			}))
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

// An auditedServer lists the streams that the accounts of a server have.
type auditedServer struct {
	*servers
	client   client.Client
	address  string
	accounts map[account]bool
}

var _ external.Importer[*v1.Stream] = (*auditedServer)(nil)

// List implements [external.Lister].
func (a *auditedServer) List(ctx context.Context) ([]external.Resource, error) {
	found := map[external.Resource]bool{} // several accounts may have one
	for with := range a.accounts {
		if err := a.listWith(ctx, with, found); err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Keys(found)), nil
}

func (a *auditedServer) listWith(ctx context.Context, with account, found map[external.Resource]bool) error {
	lease, err := a.lease(ctx, a.client, with.namespace, v1.Server{Address: a.address, CredentialsSecret: with.secret})
	if err != nil {
		return err
	}
	streams, err := lease.Conn.Streams(ctx)
	for _, config := range streams {
		found[external.Resource{ID: config.Name, Owner: config.Metadata[ownerKey]}] = true
	}
	return errors.Join(err, lease.Release())
}

// Import implements [external.Importer]. The object is named after the stream. If the stream was found
// by the credentials of a Secret, it is in the namespace of that.
func (a *auditedServer) Import(ctx context.Context, r external.Resource) (*v1.Stream, error) {
	accounts := slices.SortedFunc(maps.Keys(a.accounts), func(a, b account) int {
		return cmp.Or(strings.Compare(a.secret, b.secret), strings.Compare(a.namespace, b.namespace))
	})
	for _, with := range accounts {
		obj, err := a.importWith(ctx, with, r.ID)
		if !errors.Is(err, external.ErrAbsent) {
			return obj, err
		}
	}
	return nil, external.ErrAbsent
}

func (a *auditedServer) importWith(ctx context.Context, with account, id string) (*v1.Stream, error) {
	server := v1.Server{CredentialsSecret: with.secret}
	if a.address != a.servers.address(server) {
		server.Address = a.address
	}
	lease, err := a.lease(ctx, a.client, with.namespace, v1.Server{Address: a.address, CredentialsSecret: with.secret})
	if err != nil {
		return nil, err
	}
	c := &streamClient{lease: lease, address: a.address}
	obj := &v1.Stream{ObjectMeta: metav1.ObjectMeta{Name: strings.Trim(strings.ReplaceAll(strings.ToLower(id), "_", "-"), "-")}}
	if obj.Spec = (v1.StreamSpec{Name: id, Server: server}); with.secret != "" {
		obj.Namespace = with.namespace
	}
	if err := errors.Join(external.Describe(ctx, c, obj, id), c.Close()); err != nil {
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
