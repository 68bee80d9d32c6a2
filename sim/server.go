// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// A Server is the API server in memory, of which each run of a simulation has one. It gives the same
// answers, watch events and garbage collection as the real one, in microseconds, without a process, a
// port or a download. It starts no goroutines and reads no clock but that of its options, so that it
// can run in a testing/synctest bubble. docs/simulator-reference.md lists its limits.
type Server = apiserver.Server

// ServerOptions are the options of [NewServer]. The zero value is usable.
type ServerOptions = apiserver.Options

// A ServerChange is a change of an object, which [Server].OnChange reports.
type ServerChange = apiserver.Change

// A ServerWrite is a write that [ServerOptions].Admission admits, changes or refuses.
type ServerWrite = apiserver.Write

// NewServer returns a server by itself, for tests without a simulation:
//
//	server := sim.NewServer(sim.ServerOptions{})
//	if err := server.Install(crds...); err != nil { ... }
//	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{})
func NewServer(o ServerOptions) *Server { return apiserver.New(o) }

// Roles are what Roles, ClusterRoles and bindings allow. They are an authorizer for
// [ServerOptions].Authorizer, and can be compared with what an operator needs:
//
//	roles, err := sim.ReadRoles("../config/rbac")
//	...
//	operator, err := roles.Account("") // the only one that is bound
//	...
//	missing := roles.Compare(operator, needs).Missing
type Roles = rbac.Policy

// A RolesComparison says which permissions are missing, and which are granted and not needed.
type RolesComparison = rbac.Comparison

// ReadRoles reads the manifests in files and directories. Files without bindings, as controller-gen
// writes them, grant everything in them to any account.
func ReadRoles(paths ...string) (*Roles, error) { return rbac.Read(paths...) }

// NewRoles makes roles of objects.
func NewRoles(objects ...runtime.Object) (*Roles, error) { return rbac.New(objects...) }
