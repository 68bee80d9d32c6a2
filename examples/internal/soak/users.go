// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/05_user/mysqlserver"
	"github.com/ctrlkit/ctrlkit/policy"
)

const (
	checkAccounts  = "accounts as the Users want them"
	checkPasswords = "published passwords that work"
	checkUnowned   = "accounts without a User"
)

// A user is the model of one User.
type user struct {
	generation int64 // of the password
	privileges []v1.Privilege
}

// users are the Users of examples/05_user, on one Server.
type users struct {
	*population
	system *system
	model  []user
}

func newUsers(c client.WithWatch, o *options, s *system) subject {
	u := &users{population: newPopulation(c, o, "User", &v1.UserList{}), system: s, model: make([]user, o.objects)}
	u.details = u
	for i := range u.model {
		u.renew(i)
	}
	return u
}

func (*users) checks() []string { return []string{checkAccounts, checkPasswords, checkUnowned} }

func (u *users) renew(i int) { u.model[i] = user{generation: 1, privileges: u.privileges()} }

// privileges returns one of them at least.
func (u *users) privileges() []v1.Privilege {
	all := []v1.Privilege{"DELETE", "INSERT", "SELECT", "UPDATE"}
	u.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+u.random.IntN(len(all))]
}

func grantsOf(privileges []v1.Privilege) []v1.Grant {
	return []v1.Grant{{Database: mysqlserver.Database, Privileges: privileges}}
}

func (u *users) object(i int) client.Object {
	m := u.model[i]
	return &v1.User{ObjectMeta: name("soak", i), Spec: v1.UserSpec{
		Server: "db", Name: "soak", Grants: grantsOf(m.privileges), PasswordGeneration: m.generation, Overlap: &metav1.Duration{},
	}}
}

// prepare creates the Server, before the first User.
func (u *users) prepare(ctx context.Context, i int) error {
	if i > 0 {
		return nil
	}
	admin := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db-admin"}, StringData: map[string]string{
		"username": mysqlserver.Username, "password": mysqlserver.Password,
	}}
	if err := create(ctx, u.user, admin); err != nil {
		return err
	}
	return create(ctx, u.user, &v1.Server{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}, Spec: v1.ServerSpec{Address: u.system.front.address(), CredentialsSecret: admin.Name},
	})
}

func (u *users) edit(i int, exists bool, k int) (edit, bool) {
	m := &u.model[i]
	switch {
	case !exists || k >= 72:
		return edit{}, false
	case k < 30:
		m.generation++
		return edit{what: fmt.Sprintf("password %d requested", m.generation), apply: patching(u.object(i), `{"spec":{"passwordGeneration":%d}}`, m.generation)}, true
	case k < 50:
		m.privileges = u.privileges()
		grants, err := json.Marshal(grantsOf(m.privileges))
		return edit{what: fmt.Sprintf("granted are %s", m.privileges), apply: func(ctx context.Context, c client.Client) error {
			if err != nil {
				return err
			}
			return patching(u.nameOnly(i), `{"spec":{"grants":%s}}`, grants)(ctx, c)
		}}, true
	case k < 60:
		secret := &corev1.Secret{ObjectMeta: name("soak", i)}
		secret.Name += "-mysql"
		return edit{what: "Secret deleted", apply: func(ctx context.Context, c client.Client) error { return client.IgnoreNotFound(c.Delete(ctx, secret)) }}, true
	}
	return edit{what: "account dropped by another client", apply: func(ctx context.Context, c client.Client) error { return u.drop(ctx, c, i) }}, true
}

// nameOnly returns an object for requests that need its name.
func (u *users) nameOnly(i int) *v1.User { return &v1.User{ObjectMeta: name("soak", i)} }

// drop drops the account of a User, and requests a reconcile: no watch reports what is changed on
// the server.
func (u *users) drop(ctx context.Context, c client.Client, i int) error {
	obj := u.nameOnly(i)
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	if obj.Status.Username != "" {
		db, err := login(u.system.direct, mysqlserver.Username, mysqlserver.Password)
		if err != nil {
			return err
		}
		defer db.Close() //nolint:errcheck // the statement was answered
		if _, err := db.ExecContext(ctx, "DROP USER IF EXISTS `"+obj.Status.Username+"`@`%`"); err != nil {
			return err
		}
	}
	return patching(obj, `{"metadata":{"annotations":{%q:%q}}}`, policy.ReconcileNowAnnotation, time.Now().Format(time.RFC3339Nano))(ctx, c)
}

func (*users) want(int) readiness { return readiness{ready: true} }

func (u *users) problem(i int, obj client.Object) string {
	got, m := obj.(*v1.User), u.model[i] //nolint:errcheck // nothing else is listed
	switch {
	case got.Status.ObservedGeneration != got.Generation:
		return fmt.Sprintf("the status is about generation %d, want %d", got.Status.ObservedGeneration, got.Generation)
	case got.Status.PasswordGeneration != m.generation:
		return fmt.Sprintf("password %d is published, want %d", got.Status.PasswordGeneration, m.generation)
	case len(got.Status.Accounts) != 1 || got.Status.Accounts[0] != got.Status.Username:
		return fmt.Sprintf("the accounts are %q, want %q alone", got.Status.Accounts, got.Status.Username)
	}
	return ""
}

// check compares the accounts of the server with the Users. What no User has is an orphan.
func (u *users) check(ctx context.Context, d *population, found *checks) error {
	admin, err := login(u.system.direct, mysqlserver.Username, mysqlserver.Password)
	if err != nil {
		return err
	}
	defer admin.Close() //nolint:errcheck // only read from
	accounts, err := accountsOn(ctx, admin)
	if err != nil {
		return err
	}
	var secrets corev1.SecretList
	if err := u.user.List(ctx, &secrets, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the Secrets: %w", err)
	}
	published := map[string]map[string][]byte{}
	for i := range secrets.Items {
		published[secrets.Items[i].Name] = secrets.Items[i].Data
	}
	for i, m := range u.model {
		secret := name("soak", i).Name + "-mysql"
		if !d.lanes[i].exists {
			if published[secret] != nil {
				d.found(found, checkUnowned, i, "Secret %s exists", secret)
			}
			continue
		}
		account, password := string(published[secret]["username"]), string(published[secret]["password"])
		granted, exists := accounts[account]
		delete(accounts, account)
		want := slices.Sorted(slices.Values(m.privileges))
		switch got := privilegesIn(granted); {
		case !exists:
			d.found(found, checkAccounts, i, "its account %q does not exist", account)
			continue
		case !slices.Equal(got, want):
			d.found(found, checkAccounts, i, "account %s may %s, want %s", account, got, want)
		}
		if err := ping(ctx, u.system.direct, account, password); err != nil {
			d.found(found, checkPasswords, i, "account %s: %v", account, err)
		}
	}
	for _, account := range slices.Sorted(maps.Keys(accounts)) {
		found.add(checkUnowned, violation{object: "account " + account, lane: noLane, evidence: "it should not exist"})
	}
	return nil
}

// accountsOn returns what SHOW GRANTS says of each account but the administrator's.
func accountsOn(ctx context.Context, admin *sql.DB) (map[string][]string, error) {
	names, err := texts(ctx, admin, "SELECT user FROM mysql.user WHERE host = '%' AND user <> '"+mysqlserver.Username+"'")
	if err != nil {
		return nil, fmt.Errorf("listing the accounts: %w", err)
	}
	accounts := map[string][]string{}
	for _, name := range names {
		if accounts[name], err = texts(ctx, admin, "SHOW GRANTS FOR `"+name+"`@`%`"); err != nil {
			delete(accounts, name) // it was dropped meanwhile
		}
	}
	return accounts, ctx.Err()
}

// privilegesIn returns those on the database of the server.
func privilegesIn(grants []string) (all []v1.Privilege) {
	for _, line := range grants {
		text, on, _ := strings.Cut(strings.TrimPrefix(line, "GRANT "), " ON ")
		if strings.HasPrefix(on, "`"+mysqlserver.Database+"`.") {
			for privilege := range strings.SplitSeq(text, ", ") {
				all = append(all, v1.Privilege(privilege))
			}
		}
	}
	slices.Sort(all)
	return all
}

func login(address, username, password string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd = "tcp", address, username, password
	config.Timeout, config.ReadTimeout, config.Logger = 10*time.Second, 10*time.Second, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func ping(ctx context.Context, address, username, password string) error {
	db, err := login(address, username, password)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	return db.PingContext(ctx)
}

// texts returns the first column of what a query finds.
func texts(ctx context.Context, db *sql.DB, query string) (all []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // only read from
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}
