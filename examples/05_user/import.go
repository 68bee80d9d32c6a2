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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
)

// A databaseServer lists the databases of the server at an address, for "ctrlkit orphans" and
// "ctrlkit import".
type databaseServer struct {
	dependencies
	live    client.Reader
	servers []*v1.Server // with that address, sorted by namespace and name
}

var _ external.Importer[*v1.Database] = (*databaseServer)(nil)

// audits returns the audits of all servers.
func (d dependencies) audits(live client.Reader) func(ctx context.Context) ([]external.SystemAudit, error) {
	return eachServer(d, live, func(name string, s *databaseServer) external.SystemAudit {
		return external.AuditOf(name, s, s.objects)
	})
}

// imports returns the databases of all servers that no object has.
func (d dependencies) imports(live client.Reader) func(ctx context.Context) ([]external.SystemImport, error) {
	return eachServer(d, live, func(name string, s *databaseServer) external.SystemImport {
		return external.ImportOf(name, s, s.objects, external.Calls[*v1.Database]{})
	})
}

// eachServer returns what is made of each address that Servers have.
func eachServer[V any](d dependencies, live client.Reader, of func(name string, s *databaseServer) V) func(ctx context.Context) ([]V, error) {
	return func(ctx context.Context) ([]V, error) {
		var list v1.ServerList
		if err := live.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing Servers: %w", err)
		}
		byAddress := map[string]*databaseServer{}
		for i := range list.Items {
			address := d.addressOf(&list.Items[i])
			if byAddress[address] == nil {
				byAddress[address] = &databaseServer{dependencies: d, live: live}
			}
			byAddress[address].servers = append(byAddress[address].servers, &list.Items[i])
		}
		var made []V
		for _, address := range slices.Sorted(maps.Keys(byAddress)) {
			s := byAddress[address]
			slices.SortFunc(s.servers, func(a, b *v1.Server) int {
				return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
			})
			made = append(made, of(address, s))
		}
		return made, nil
	}
}

// objects returns the Databases on any Server with the address.
func (s *databaseServer) objects(ctx context.Context) ([]external.Holder, error) {
	var list v1.DatabaseList
	if err := s.live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing Databases: %w", err)
	}
	var found []external.Holder
	for i := range list.Items {
		obj := &list.Items[i]
		if slices.ContainsFunc(s.servers, func(server *v1.Server) bool {
			return server.Namespace == obj.Namespace && server.Name == obj.Spec.Server
		}) {
			found = append(found, external.Holder{Object: obj})
		}
	}
	return found, nil
}

// connect logs in as the administrator of the first Server.
func (s *databaseServer) connect(ctx context.Context) (Accounts, error) {
	server := s.servers[0]
	var secret corev1.Secret
	if err := s.live.Get(ctx, client.ObjectKey{Namespace: server.Namespace, Name: server.Spec.CredentialsSecret}, &secret); err != nil {
		return nil, fmt.Errorf("reading the credentials of Server %s/%s: %w", server.Namespace, server.Name, err)
	}
	return s.connectTo(ctx, server, &secret, server)
}

// List implements [external.Lister].
func (s *databaseServer) List(ctx context.Context) ([]external.Resource, error) {
	accounts, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	names, err := accounts.Databases(ctx)
	var all []external.Resource
	for _, name := range names {
		all = append(all, external.Resource{ID: name})
	}
	return all, errors.Join(err, accounts.Close())
}

// Import implements [external.Importer]. The object is in the namespace of the Server.
func (s *databaseServer) Import(ctx context.Context, r external.Resource) (*v1.Database, error) {
	accounts, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	obj := &v1.Database{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.servers[0].Namespace, Name: objectName(r.ID)},
		Spec:       v1.DatabaseSpec{Server: s.servers[0].Name, Name: r.ID},
	}
	c := &databaseClient{server: accounts}
	return obj, errors.Join(external.Describe(ctx, c, obj, r.ID), c.Close())
}

// objectName returns a name for the object of a database.
func objectName(database string) string {
	return strings.Trim(strings.NewReplacer("_", "-", "$", "-").Replace(strings.ToLower(database)), "-")
}
