// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/policy"
)

var namespaces = flag.Int("namespaces", 2, "delete so many `namespaces` at once")

// Namespaces are deleted with all that is in them, each by one request. What is on the server is
// gone, or left as its policy says; Users and Databases go first, the credentials last.
func TestNamespaceDeletion(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t), "config/admission/policy.yaml", "config/admission/databases.yaml")
	login := startMariaDB(t)
	admin, err := connectMySQL(t.Context(), login, nil)
	exampletest.Must(t, err)
	t.Cleanup(func() { exampletest.Must(t, admin.Close()) })

	all := map[string]cache.Config{}
	for range *namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
		exampletest.Must(t, c.Create(t.Context(), namespace))
		all[namespace.Name] = cache.Config{}
	}
	config, options := c.Operator(t, "mysql")
	options.Cache.DefaultNamespaces, options.Logger = all, zap.New(zap.WriteTo(io.Discard))
	mgr, err := mySQL(dependencies{connect: connectMySQL, newPassword: newPassword, claims: "mysql-system"}).Manager(config, options)
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)

	var left []string // on the server
	for name := range all {
		kept := addTeam(t, c, name, login)
		left = append(left, kept...)
	}
	order := watchDeletions(t, c)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for all of them
	defer cancel()
	for name := range all {
		exampletest.Must(t, c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for name := range all {
		order.check(ctx, t, name)
	}
	t.Logf("%d namespaces were gone after %s", len(all), time.Since(begun))

	names, err := admin.Databases(t.Context())
	exampletest.Must(t, err)
	accounts, err := accountsOf(admin)
	exampletest.Must(t, err)
	got := append(slices.DeleteFunc(names, func(name string) bool { return name == "test" }), accounts...)
	slices.Sort(got)
	slices.Sort(left)
	if !slices.Equal(got, left) {
		t.Errorf("on the server are %q, want %q", got, left)
	}
}

// addTeam adds a Server with credentials, two Users and two Databases to a namespace, one of each
// with a policy to keep it, and returns what will be left on the server.
func addTeam(t *testing.T, c *exampletest.Cluster, namespace string, login Login) (kept []string) {
	t.Helper()
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	keep := func(name string) metav1.ObjectMeta {
		meta := in(name)
		meta.Annotations = map[string]string{policy.ReclaimAnnotation: string(policy.ReclaimRetain)}
		return meta
	}
	app := &v1.User{ObjectMeta: in("app"), Spec: v1.UserSpec{Server: "db", Name: "app"}}
	audit := &v1.User{ObjectMeta: keep("audit"), Spec: v1.UserSpec{Server: "db", Name: "audit"}}
	orders := &v1.Database{ObjectMeta: in("orders"), Spec: v1.DatabaseSpec{Server: "db"}}
	archive := &v1.Database{ObjectMeta: keep("archive"), Spec: v1.DatabaseSpec{Server: "db"}}
	for _, obj := range []client.Object{
		app, audit, orders, archive,
		&v1.Server{ObjectMeta: in("db"), Spec: v1.ServerSpec{Address: login.Address, CredentialsSecret: "admin", TLS: v1.TLSDisabled}},
		&corev1.Secret{ObjectMeta: in("admin"), StringData: map[string]string{"username": login.Username, "password": login.Password}},
	} {
		exampletest.Must(t, c.Add(t.Context(), obj))
	}
	exampletest.AwaitObject(t, c, app, exampletest.Ready[*v1.User])
	audit = exampletest.AwaitObject(t, c, audit, exampletest.Ready[*v1.User])
	exampletest.AwaitObject(t, c, orders, exampletest.Ready[*v1.Database])
	archive = exampletest.AwaitObject(t, c, archive, exampletest.Ready[*v1.Database])
	return []string{baseOf(audit), archive.Status.Database}
}

// accountsOf returns what the names of the accounts begin with that the operator has made. When a
// namespace is deleted, the Secret of a User may go before the User does, so that its other account
// has been made, too.
func accountsOf(admin Accounts) ([]string, error) {
	rows, err := admin.(*mysqlAccounts).db.Query("SELECT user FROM mysql.user WHERE user LIKE 'app\\_%' OR user LIKE 'audit\\_%'") //nolint:errcheck // it is its type
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // only read from
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if name = name[:strings.LastIndex(name, "_")]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, rows.Err()
}

// deletions are the revisions at which objects were gone, by namespace and name.
type deletions struct {
	changed chan struct{} // has a value after a change

	mu  sync.Mutex // for all below
	all map[string]int
}

// watchDeletions watches all kinds of the operator, in all namespaces.
func watchDeletions(t *testing.T, c *exampletest.Cluster) *deletions {
	t.Helper()
	d := &deletions{changed: make(chan struct{}, 1), all: map[string]int{}}
	for _, list := range []client.ObjectList{&v1.UserList{}, &v1.DatabaseList{}, &v1.ServerList{}, &corev1.SecretList{}, &corev1.NamespaceList{}} {
		w, err := c.Watch(t.Context(), list)
		exampletest.Must(t, err)
		t.Cleanup(w.Stop)
		go d.note(w)
	}
	return d
}

func (d *deletions) note(w watch.Interface) {
	for event := range w.ResultChan() {
		obj, ok := event.Object.(client.Object)
		if !ok || event.Type != watch.Deleted {
			continue
		}
		revision, _ := strconv.Atoi(obj.GetResourceVersion()) // it is zero, and out of order, if it is none
		d.mu.Lock()
		d.all[obj.GetNamespace()+"/"+obj.GetName()] = revision
		d.mu.Unlock()
		select {
		case d.changed <- struct{}{}:
		default:
		}
	}
}

// check waits until a namespace is gone with all that is in it, and checks the order.
func (d *deletions) check(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	for {
		d.mu.Lock()
		at := make([]int, 0, 7)
		for _, key := range []string{namespace + "/app", namespace + "/audit", namespace + "/orders", namespace + "/archive", namespace + "/db", namespace + "/admin", "/" + namespace} {
			if revision, ok := d.all[key]; ok {
				at = append(at, revision)
			}
		}
		d.mu.Unlock()
		if len(at) < 7 {
			select {
			case <-d.changed:
				continue
			case <-ctx.Done():
				t.Fatalf("namespace %s: %d of 7 objects are gone, with the namespace itself: %v", namespace, len(at), ctx.Err())
			}
		}
		if users, server, credentials := slices.Max(at[:4]), at[4], at[5]; users >= server || server >= credentials {
			t.Errorf("namespace %s: gone are Users and Databases at %d, the Server at %d, its credentials at %d", namespace, users, server, credentials)
		}
		return
	}
}
