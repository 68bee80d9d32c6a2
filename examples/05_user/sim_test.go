// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The operator ends in the same state whatever goes wrong, in the cluster and on the server, and
// the published password works all the time.
func TestSurvivesEverything(t *testing.T) {
	exampletest.Simulate(t, userWorkload(t),
		sim.WithoutFault(sim.FaultRecreate, "a Server that has a User stays until its user deletes that"),
		sim.WithoutFault(sim.FaultDeleteAndCreate, "a Server that has a User stays until its user deletes that"))
}

func userWorkload(t *testing.T) sim.Workload {
	return sim.Workload{
		Scheme: simScheme(t), CRDs: []string{"config/crd/bases"}, RBAC: []string{"config/rbac"}, ServiceAccount: "mysql-system/mysql-operator",
		Quiet: 5 * time.Minute, // longer than the poll and the overlap
		Operator: func(ctx context.Context, p *sim.Process) error {
			fake := fakeServer.Of(p)
			config := p.Config()
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recording{next, fake, "shop-mysql"} })
			mgr, err := mySQL(fake.dependencies(p)).Manager(config, p.ManagerOptions())
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
		Script: func(w *sim.World) {
			fake := fakeServer.Of(w)
			server, credentials, user := newServer(), newCredentials(), newShop()
			w.Create(user) // it waits for its Server
			w.Create(server, credentials)
			w.Settle()
			sim.Update(w, user, func(u *v1.User) { u.Spec.PasswordGeneration, u.Spec.Grants[0].Privileges = 2, []v1.Privilege{"SELECT"} })
			w.Settle()
			fake.checkEnd(t, 1)
			fake.note(func() { fake.broken = true; clear(fake.accounts) }) // the server has lost its disk
			w.Sleep(2 * poll)
			w.Settle()
			fake.checkEnd(t, 1)
			w.Delete(user)
			w.Settle()
			fake.checkEnd(t, 0)
			w.Delete(server)
			w.Delete(credentials)
			w.Settle()
		},
		Normalize: func(obj *sim.Object) bool {
			// A crash between a password and its publication costs one. What follows is which
			// account is used.
			for _, path := range [][]string{{"data", "password"}, {"data", "username"}, {"status", "username"}, {"status", "accounts"}} {
				unstructured.RemoveNestedField(obj.Content, path...)
			}
			return true
		},
	}
}

// Databases are created once, changed and dropped, whatever goes wrong.
func TestDatabasesSurviveEverything(t *testing.T) {
	exampletest.Simulate(t, databaseWorkload(t),
		sim.WithoutFault(sim.FaultRecreate, "a Server that has a Database stays until its user deletes that"),
		sim.WithoutFault(sim.FaultDeleteAndCreate, "a Server that has a Database stays until its user deletes that"))
}

// A user may change each field, and change it back.
func TestTransitions(t *testing.T) {
	for name, workload := range map[string]sim.Workload{"a user": userWorkload(t), "a database": databaseWorkload(t)} {
		t.Run(name, func(t *testing.T) {
			exampletest.Simulate(t, workload, sim.WithTransitions(""),
				sim.ByDesign(`^same-as-fresh: server/db spec\.address`, "a database that was made at another address is not proven to be that of this Database"))
		})
	}
}

func databaseWorkload(t *testing.T) sim.Workload {
	return sim.Workload{
		Scheme: simScheme(t), CRDs: []string{"config/crd/bases"}, RBAC: []string{"config/rbac"}, ServiceAccount: "mysql-system/mysql-operator",
		Quiet:   5 * time.Minute,
		Objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mysql-system"}}}, // of the operator, with the claims
		Operator: func(ctx context.Context, p *sim.Process) error {
			mgr, err := mySQL(fakeServer.Of(p).dependencies(p)).Manager(p.Config(), p.ManagerOptions())
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
		Script: func(w *sim.World) {
			orders := &v1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"}, Spec: v1.DatabaseSpec{Server: "db", Name: "orders"}}
			w.Create(orders) // it waits for its Server
			w.Create(newServer(), newCredentials())
			w.Settle()
			sim.Update(w, orders, func(d *v1.Database) { d.Spec.Collation = "utf8mb4_general_ci" })
			w.Settle()
			w.Delete(orders)
			w.Settle()
			w.Delete(newServer())
			w.Delete(newCredentials())
			w.Settle()
		},
	}
}

// checkEnd checks that there are so many accounts, and that each can do what is wanted at the end.
func (f *fakeMySQL) checkEnd(t *testing.T, accounts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.accounts) != accounts {
		t.Errorf("there are %d accounts, want %d", len(f.accounts), accounts)
	}
	for _, violation := range f.violations {
		t.Error(violation)
	}
	for name, a := range f.accounts {
		if got := a.grants.String(); got != "SELECT on `shop`.*" || !strings.HasPrefix(name, "shop_") {
			t.Errorf("account %s has the grants %s", name, got)
		}
	}
	if accounts > 0 {
		if !f.isPublishedUsable() {
			t.Error("the published password does not work")
		}
	}
}

func newServer() *v1.Server {
	return &v1.Server{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: v1.ServerSpec{Address: "db.example.com:3307", CredentialsSecret: "db-admin"}}
}

func newCredentials() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-admin"}, Data: map[string][]byte{"username": []byte("root"), "password": []byte("admin")}}
}

func newShop() *v1.User {
	return &v1.User{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Spec: v1.UserSpec{
		Server: "db", Name: "shop", PasswordGeneration: 1, Overlap: &metav1.Duration{Duration: 2 * time.Minute},
		Grants: []v1.Grant{{Database: "shop", Privileges: []v1.Privilege{"SELECT", "INSERT"}}},
	}}
}

func simScheme(t *testing.T) *runtime.Scheme { return exampletest.NewScheme(t, v1.AddToScheme) }
