// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/05_user/mysqlserver"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/policy"
)

var shared = ctrlkittest.SharedControlPlane{Options: controlplane.Options{Parts: controlplane.AllParts, CRDs: []string{"config/crd/bases"}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The operator does its work against a real control plane and a real server, with the permissions
// of its role and no others.
func TestOperator(t *testing.T) {
	c := exampletest.NewCluster(t, &shared, simScheme(t), "config/admission/policy.yaml")
	server, err := mysqlserver.Start("127.0.0.1:0")
	exampletest.Must(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	admin, err := connectMySQL(t.Context(), Login{Address: server.Address, Username: mysqlserver.Username, Password: mysqlserver.Password}, nil)
	exampletest.Must(t, err)
	log := start(t, c, server.Address)
	o := &operatorTest{T: t, Cluster: c, admin: admin, secrets: map[string]bool{}}

	c.Apply(t, "config/samples/user.yaml")
	shop := o.await("shop", exampletest.Ready[*v1.User])
	blog := o.await("blog", func(u *v1.User) bool { return exampletest.Reason(u, condition.Reconciling) == "ServerNotFound" })
	ctrlkittest.CheckConditions(t, shop)
	ctrlkittest.CheckConditions(t, blog)
	if blog.Annotations[v1.AccountAnnotation] != "" || shop.Annotations[v1.AccountAnnotation] != baseOf(shop) {
		t.Errorf("claimed are %q and %q", shop.Annotations, blog.Annotations)
	}
	o.checkAccount(shop, "DELETE, INSERT, SELECT, UPDATE on `shop`.*")
	o.checkRotation()
	o.checkRepair()
	o.checkSkip()
	o.checkDeletion()
	if err := admin.Close(); err != nil {
		t.Error(err)
	}
	o.checkSecrecy(log)
}

type operatorTest struct {
	*testing.T
	*exampletest.Cluster
	admin   Accounts
	secrets map[string]bool // passwords that were published
}

// checkRotation requests another password, and checks that both work until the overlap is over.
func (o *operatorTest) checkRotation() {
	o.Helper()
	before := o.secret()
	o.patch("shop", `{"spec":{"passwordGeneration":2,"overlap":"1h"}}`)
	shop := o.await("shop", func(u *v1.User) bool { return exampletest.Ready(u) && u.Status.PasswordGeneration == 2 })
	after := o.secret()
	if before["username"] == after["username"] || before["password"] == after["password"] {
		o.Errorf("account %s is published before and after, or the same password", after["username"])
	}
	if len(shop.Status.Accounts) != 2 || exampletest.Reason(shop, v1.ConditionInSync) != "OldPasswordWorks" {
		o.Errorf("during the overlap the status is %+v", shop.Status)
	}
	for _, data := range []map[string]string{before, after} {
		checkLogins(o.T, o.admin, data["username"], map[string]bool{data["password"]: true})
	}
	o.patch("shop", `{"spec":{"passwordGeneration":3}}`) // it waits: both accounts are in use
	o.await("shop", func(u *v1.User) bool { return exampletest.Reason(u, v1.ConditionInSync) == "OverlapNotOver" })
	checkLogins(o.T, o.admin, before["username"], map[string]bool{before["password"]: true})
	o.patch("shop", `{"spec":{"overlap":"0s"}}`)
	shop = o.await("shop", func(u *v1.User) bool {
		return exampletest.Ready(u) && u.Status.PasswordGeneration == 3 && len(u.Status.Accounts) == 1
	})
	checkLogins(o.T, o.admin, after["username"], map[string]bool{after["password"]: false})
	o.checkAccount(shop, "DELETE, INSERT, SELECT, UPDATE on `shop`.*")
}

// checkRepair drops the account by hand, changes the grants of the next one, and requests a
// repair.
func (o *operatorTest) checkRepair() {
	o.Helper()
	data := o.secret()
	if err := o.admin.Drop(o.Context(), data["username"]); err != nil {
		o.Fatal(err)
	}
	shop := o.now("shop", "1")
	o.checkAccount(shop, "DELETE, INSERT, SELECT, UPDATE on `shop`.*")
	if err := errors.Join(
		o.admin.SetPassword(o.Context(), data["username"], canary),
		o.admin.Grant(o.Context(), data["username"], Grants{"*.*": {"PROCESS"}}),
		o.admin.Revoke(o.Context(), data["username"], Grants{"`shop`.*": {"INSERT"}}),
	); err != nil {
		o.Fatal(err)
	}
	o.checkAccount(o.now("shop", "2"), "DELETE, INSERT, SELECT, UPDATE on `shop`.*")
}

// checkSkip checks that a User which is not managed is observed, and that nothing is changed.
func (o *operatorTest) checkSkip() {
	o.Helper()
	o.patch("shop", `{"metadata":{"annotations":{"`+policy.ReconcileAnnotation+`":"skip"}},"spec":{"grants":[]}}`)
	shop := o.await("shop", func(u *v1.User) bool { return exampletest.Reason(u, v1.ConditionInSync) == "Differs" })
	ctrlkittest.CheckConditions(o.T, shop)
	o.checkAccount(shop, "DELETE, INSERT, SELECT, UPDATE on `shop`.*")
	o.patch("shop", `{"metadata":{"annotations":{"`+policy.ReconcileAnnotation+`":null}}}`)
	o.checkAccount(o.await("shop", func(u *v1.User) bool {
		return exampletest.Ready(u) && exampletest.Reason(u, v1.ConditionInSync) == "InSync"
	}), "")
}

// checkDeletion deletes Users without and with credentials, and one that leaves its account.
func (o *operatorTest) checkDeletion() {
	o.Helper()
	credentials := &corev1.Secret{ObjectMeta: o.In("db-admin")}
	exampletest.Must(o.T, o.Get(o.Context(), client.ObjectKeyFromObject(credentials), credentials))
	kept := &v1.User{ObjectMeta: o.In("kept"), Spec: v1.UserSpec{Server: "db", Name: "kept"}}
	exampletest.Must(o.T, o.Create(o.Context(), kept))
	kept, shop := o.await("kept", exampletest.Ready[*v1.User]), o.await("shop", exampletest.Ready[*v1.User])
	exampletest.Must(o.T, o.Delete(o.Context(), credentials))
	o.Patch(o.T, credentials, `{"metadata":{"finalizers":null}}`) // they are kept until a person does that
	o.Gone(o.T, credentials)
	for _, obj := range []client.Object{kept, shop} {
		exampletest.Must(o.T, o.Delete(o.Context(), obj))
	}
	for _, name := range []string{"kept", "shop"} {
		user := o.await(name, func(u *v1.User) bool {
			return u.DeletionTimestamp != nil && exampletest.Reason(u, condition.Stalled) == "CredentialsNotFound"
		})
		c := meta.FindStatusCondition(user.Status.Conditions, v1.ConditionServerFound)
		if c == nil || !strings.Contains(c.Message, "on the server, annotate the User with policy.ctrlkit.dev/reconcile=detach-on-delete") {
			o.Errorf("the condition of %s is %+v, want that it has both remedies", name, c)
		}
	}
	o.patch("kept", `{"metadata":{"annotations":{"`+policy.ReconcileAnnotation+`":"detach-on-delete"}}}`)
	o.Gone(o.T, kept)
	again := &corev1.Secret{ObjectMeta: o.In("db-admin"), Data: credentials.Data}
	exampletest.Must(o.T, o.Create(o.Context(), again))
	o.Gone(o.T, shop)
	for _, name := range namesOf(shop) {
		if _, err := o.admin.Grants(o.Context(), name); !errors.Is(err, ErrNoAccount) {
			o.Errorf("account %s after the deletion: %v", name, err)
		}
	}
	if _, err := o.admin.Grants(o.Context(), namesOf(kept)[0]); err != nil {
		o.Errorf("the account of the User that was detached: %v", err)
	}
}

// checkAccount checks that the published password works, and what may be done with it.
func (o *operatorTest) checkAccount(user *v1.User, grants string) {
	o.Helper()
	data := o.secret()
	checkLogins(o.T, o.admin, data["username"], map[string]bool{data["password"]: true})
	got, err := o.admin.Grants(o.Context(), user.Status.Username)
	if err != nil || got.String() != grants || user.Status.Username != data["username"] || data["host"] != "127.0.0.1" {
		o.Errorf("account %s has the grants %q and error %v, want %q for %s on %s", user.Status.Username, got, err, grants, data["username"], data["host"])
	}
}

// secret returns what is published for the User shop.
func (o *operatorTest) secret() map[string]string {
	o.Helper()
	var secret corev1.Secret
	exampletest.Must(o.T, o.Get(o.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "shop-mysql"}, &secret))
	o.secrets[string(secret.Data["password"])] = true
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data
}

func (o *operatorTest) patch(name, patch string) {
	o.Helper()
	o.Patch(o.T, &v1.User{ObjectMeta: o.In(name)}, patch)
}

func (o *operatorTest) await(name string, done func(*v1.User) bool) *v1.User {
	o.Helper()
	return exampletest.Await(o.T, o.Cluster, name, done)
}

// now requests a reconcile, and returns the User after it.
func (o *operatorTest) now(name, request string) *v1.User {
	o.Helper()
	o.patch(name, `{"metadata":{"annotations":{"`+policy.ReconcileNowAnnotation+`":"`+request+`"}}}`)
	return o.await(name, func(u *v1.User) bool { return exampletest.Ready(u) && u.Status.LastHandledReconcileAt == request })
}

// checkSecrecy checks that no password is in the log of the operator, in Kubernetes events, or in
// an object that is no Secret.
func (o *operatorTest) checkSecrecy(log *lockedBuffer) {
	o.Helper()
	in := client.InNamespace(o.Namespace)
	var events eventsv1.EventList
	var users v1.UserList
	var servers v1.ServerList
	if err := errors.Join(o.List(o.Context(), &events, in), o.List(o.Context(), &users, in), o.List(o.Context(), &servers, in)); err != nil {
		o.Fatal(err)
	}
	o.secrets[canary] = true
	if len(o.secrets) < 4 || log.String() == "" {
		o.Errorf("checking %d passwords in %d events and %d bytes of the log", len(o.secrets), len(events.Items), len(log.String()))
	}
	for password := range o.secrets {
		for _, text := range []string{log.String(), events.String(), fmt.Sprint(users, servers)} {
			if strings.Contains(text, password) {
				o.Errorf("a password is visible in %.200s", text)
			}
		}
	}
}

// start runs the operator until the test ends, and returns its log.
func start(t *testing.T, c *exampletest.Cluster, embedded string) *lockedBuffer {
	t.Helper()
	log := &lockedBuffer{}
	config, options := c.Operator(t, "mysql")
	options.Logger = zap.New(zap.WriteTo(log), zap.UseDevMode(true))
	mgr, err := mySQL(dependencies{connect: connectMySQL, newPassword: newPassword, embedded: embedded, claims: "mysql-system"}).Manager(config, options)
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return log
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}
