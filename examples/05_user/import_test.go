// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
)

// Databases that were made by hand are imported, 40 in make test and 200 in make explore: applied
// in a Namespace whose owner allows it, their manifests adopt them, and no statement changes a
// database. Of what has an object, nothing is imported again.
func TestImport(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t))
	login := startMariaDB(t)
	count := 40
	if rings.Exploring() {
		count = 200
	}
	admin, err := connectMySQL(t.Context(), login, nil)
	exampletest.Must(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	root := admin.(*mysqlAccounts) //nolint:errcheck // connectMySQL returns no other
	for i := range count {
		root.mustExec(t, fmt.Sprintf("CREATE DATABASE `Db_%d`%s", i, []string{"", " CHARACTER SET latin1", " COLLATE utf8mb3_bin", " CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"}[i%4]))
	}
	root.mustExec(t, "CREATE TABLE Db_7.orders (text TEXT)")
	root.mustExec(t, "ALTER USER root@localhost IDENTIFIED BY 'administrator'")
	start(t, c, "")
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: c.In("db-admin"), StringData: map[string]string{"username": "root", "password": "administrator"}},
		&v1.Server{ObjectMeta: c.In("db"), Spec: v1.ServerSpec{Address: login.Address, CredentialsSecret: "db-admin"}},
	} {
		exampletest.Must(t, c.Add(t.Context(), obj))
	}
	server := exampletest.Await(t, c, "db", exampletest.Ready[*v1.Server])

	system := &databaseServer{dependencies: dependencies{connect: connectMySQL}, live: c, servers: []*v1.Server{server}}
	all, err := external.Import(t.Context(), system, system.objects, nil)
	if err != nil || len(all) != count {
		t.Fatalf("%d Databases, error %v", len(all), err)
	}
	c.Patch(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}, `{"metadata":{"annotations":{"external.ctrlkit.dev/adopt":"Db_*"}}}`)
	before := root.changes(t)
	for _, obj := range all {
		exampletest.Must(t, c.Add(t.Context(), obj.DeepCopy()))
	}
	for _, obj := range all {
		exampletest.Await(t, c, obj.Name, exampletest.Ready[*v1.Database])
	}
	if after := root.changes(t); after != before {
		t.Errorf("the server has counted %s before, and %s after", before, after)
	}
	unowned, missing, err := external.Audit(t.Context(), system, system.objects)
	if err != nil || len(unowned)+len(missing) > 0 {
		t.Errorf("the audit found %+v and %+v, error %v", unowned, missing, err)
	}
	if again, err := external.Import(t.Context(), system, system.objects, nil); err != nil || len(again) > 0 {
		t.Errorf("%d Databases are imported again, error %v", len(again), err)
	}
	checkDeletions(t, c, root)
}

// checkDeletions deletes Databases with and without a table.
func checkDeletions(t *testing.T, c *exampletest.Cluster, root *mysqlAccounts) {
	full, empty := &v1.Database{ObjectMeta: c.In("db-7")}, &v1.Database{ObjectMeta: c.In("db-8")}
	exampletest.Must(t, c.Delete(t.Context(), full))
	exampletest.Must(t, c.Delete(t.Context(), empty))
	c.Gone(t, empty)
	full = exampletest.Await(t, c, "db-7", func(d *v1.Database) bool { return exampletest.Reason(d, condition.Stalled) == "DatabaseNotEmpty" })
	if message := meta.FindStatusCondition(full.Status.Conditions, condition.Stalled).Message; !strings.Contains(message, policy.ReclaimAnnotation+" to retain") {
		t.Errorf("the message is %q", message)
	}
	patch := client.MergeFrom(full.DeepCopy())
	full.Annotations[policy.ReclaimAnnotation] = "retain" // as the message says
	exampletest.Must(t, c.WithWatch.Patch(t.Context(), full, patch))
	c.Gone(t, full)
	names, err := root.Databases(t.Context())
	if exampletest.Must(t, err); slices.Contains(names, "Db_8") || !slices.Contains(names, "Db_7") {
		t.Errorf("there are %v", names)
	}
}

// changes returns how many statements have changed databases so far.
func (a *mysqlAccounts) changes(t *testing.T) string {
	t.Helper()
	rows, err := a.db.QueryContext(t.Context(), "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_create_db', 'Com_alter_db', 'Com_drop_db', 'Com_create_table', 'Com_drop_table')")
	exampletest.Must(t, err)
	defer rows.Close() //nolint:errcheck // only read from
	var all []string
	for rows.Next() {
		var name, n string
		exampletest.Must(t, rows.Scan(&name, &n))
		all = append(all, name+"="+n)
	}
	exampletest.Must(t, rows.Err())
	return strings.Join(all, " ")
}

// A database that another Database has, or that a person made, is not taken by its name alone.
func TestDatabaseOfAnother(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t))
	login := startMariaDB(t)
	admin, err := connectMySQL(t.Context(), login, nil)
	exampletest.Must(t, err)
	t.Cleanup(func() { _ = admin.Close() })
	root := admin.(*mysqlAccounts) //nolint:errcheck // connectMySQL returns no other
	root.mustExec(t, "CREATE DATABASE byhand CHARACTER SET latin1")
	root.mustExec(t, "ALTER USER root@localhost IDENTIFIED BY 'administrator'")
	start(t, c, "")
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: c.In("db-admin"), StringData: map[string]string{"username": "root", "password": "administrator"}},
		&v1.Server{ObjectMeta: c.In("db"), Spec: v1.ServerSpec{Address: login.Address, CredentialsSecret: "db-admin"}},
		&v1.Database{ObjectMeta: c.In("first"), Spec: v1.DatabaseSpec{Server: "db", Name: "ours", CharacterSet: "latin1"}},
	} {
		exampletest.Must(t, c.Add(t.Context(), obj))
	}
	exampletest.Await(t, c, "first", exampletest.Ready[*v1.Database])
	for _, name := range []string{"ours", "byhand"} {
		second := &v1.Database{ObjectMeta: c.In("second-" + name), Spec: v1.DatabaseSpec{Server: "db", Name: name, CharacterSet: "utf8mb4"}}
		exampletest.Must(t, c.Add(t.Context(), second))
		second = exampletest.Await(t, c, second.Name, func(d *v1.Database) bool { return exampletest.Reason(d, condition.Stalled) != "" })
		t.Logf("%s: %s", exampletest.Reason(second, condition.Stalled), name)
		exampletest.Must(t, c.Delete(t.Context(), second))
		c.Gone(t, second)
		if s, err := root.Database(context.WithoutCancel(t.Context()), name); err != nil || s.CharacterSet != "latin1" {
			t.Errorf("database %s has %+v, error %v", name, s, err)
		}
	}
}
