// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/condition/conditiontest"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/policy"
)

// The operator does its work against a real control plane and a real server, with the permissions
// of its role and no others.
func TestOperator(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{CRDs: []string{"config/crd/bases"}})
	cluster, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: simScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, cluster, "config/rbac/operator.yaml", "config/rbac/role.yaml", "config/admission/policy.yaml")
	server, err := startEmbedded("127.0.0.1:0", embeddedAdmin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	admin, err := connectMySQL(t.Context(), Login{Address: server.address, Username: embeddedAdmin.Username, Password: embeddedAdmin.Password}, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := start(t, plane, server.address)
	o := &operatorTest{T: t, cluster: cluster, admin: admin, secrets: map[string]bool{}}

	applyAll(t, cluster, "config/samples/user.yaml")
	shop := o.await("shop", ready)
	blog := o.await("blog", func(u *v1.User) bool { return reason(u, condition.Reconciling) == "ServerNotFound" })
	conditiontest.Check(t, shop)
	conditiontest.Check(t, blog)
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
	cluster client.WithWatch
	admin   Accounts
	secrets map[string]bool // passwords that were published
}

// checkRotation requests another password, and checks that both work until the overlap is over.
func (o *operatorTest) checkRotation() {
	o.Helper()
	before := o.secret()
	o.patch("shop", `{"spec":{"passwordGeneration":2,"overlap":"1h"}}`)
	shop := o.await("shop", func(u *v1.User) bool { return ready(u) && u.Status.PasswordGeneration == 2 })
	after := o.secret()
	if before["username"] == after["username"] || before["password"] == after["password"] {
		o.Errorf("account %s is published before and after, or the same password", after["username"])
	}
	if len(shop.Status.Accounts) != 2 || reason(shop, v1.ConditionInSync) != "OldPasswordWorks" {
		o.Errorf("during the overlap the status is %+v", shop.Status)
	}
	for _, data := range []map[string]string{before, after} {
		checkLogins(o.T, o.admin, data["username"], map[string]bool{data["password"]: true})
	}
	o.patch("shop", `{"spec":{"passwordGeneration":3}}`) // it waits: both accounts are in use
	o.await("shop", func(u *v1.User) bool { return reason(u, v1.ConditionInSync) == "OverlapNotOver" })
	checkLogins(o.T, o.admin, before["username"], map[string]bool{before["password"]: true})
	o.patch("shop", `{"spec":{"overlap":"0s"}}`)
	shop = o.await("shop", func(u *v1.User) bool {
		return ready(u) && u.Status.PasswordGeneration == 3 && len(u.Status.Accounts) == 1
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
	shop := o.await("shop", func(u *v1.User) bool { return reason(u, v1.ConditionInSync) == "Differs" })
	conditiontest.Check(o.T, shop)
	o.checkAccount(shop, "DELETE, INSERT, SELECT, UPDATE on `shop`.*")
	o.patch("shop", `{"metadata":{"annotations":{"`+policy.ReconcileAnnotation+`":null}}}`)
	o.checkAccount(o.await("shop", func(u *v1.User) bool { return ready(u) && reason(u, v1.ConditionInSync) == "InSync" }), "")
}

// checkDeletion deletes Users without and with credentials, and one that leaves its account.
func (o *operatorTest) checkDeletion() {
	o.Helper()
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-admin"}}
	if err := o.cluster.Get(o.Context(), client.ObjectKeyFromObject(credentials), credentials); err != nil {
		o.Fatal(err)
	}
	kept := &v1.User{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}, Spec: v1.UserSpec{Server: "db", Name: "kept"}}
	if err := o.cluster.Create(o.Context(), kept); err != nil {
		o.Fatal(err)
	}
	kept, shop := o.await("kept", ready), o.await("shop", ready)
	for _, obj := range []client.Object{credentials, kept, shop} {
		if err := o.cluster.Delete(o.Context(), obj); err != nil {
			o.Fatal(err)
		}
	}
	for _, name := range []string{"kept", "shop"} {
		user := o.await(name, func(u *v1.User) bool {
			return u.DeletionTimestamp != nil && reason(u, condition.Stalled) == "CredentialsNotFound"
		})
		c := meta.FindStatusCondition(user.Status.Conditions, v1.ConditionServerFound)
		if c == nil || !strings.Contains(c.Message, "on the server, annotate the User with policy.ctrlkit.dev/reconcile=detach-on-delete") {
			o.Errorf("the condition of %s is %+v, want that it has both remedies", name, c)
		}
	}
	o.patch("kept", `{"metadata":{"annotations":{"`+policy.ReconcileAnnotation+`":"detach-on-delete"}}}`)
	o.awaitGone(kept)
	again := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-admin"}, Data: credentials.Data}
	if err := o.cluster.Create(o.Context(), again); err != nil {
		o.Fatal(err)
	}
	o.awaitGone(shop)
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
	if err := o.cluster.Get(o.Context(), client.ObjectKey{Namespace: "default", Name: "shop-mysql"}, &secret); err != nil {
		o.Fatal(err)
	}
	o.secrets[string(secret.Data["password"])] = true
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data
}

func (o *operatorTest) patch(name, patch string) {
	o.Helper()
	user := &v1.User{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := o.cluster.Patch(o.Context(), user, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		o.Fatal(err)
	}
}

// now requests a reconcile, and returns the User after it.
func (o *operatorTest) now(name, request string) *v1.User {
	o.Helper()
	o.patch(name, `{"metadata":{"annotations":{"`+policy.ReconcileNowAnnotation+`":"`+request+`"}}}`)
	return o.await(name, func(u *v1.User) bool { return ready(u) && u.Status.LastHandledReconcileAt == request })
}

// await returns an object as soon as it is as wanted.
func (o *operatorTest) await(name string, done func(*v1.User) bool) *v1.User {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), time.Minute) // a failure shows the log of the operator
	defer cancel()
	w, err := o.cluster.Watch(ctx, &v1.UserList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
	if err != nil {
		o.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if obj, ok := event.Object.(*v1.User); ok && done(obj) {
			return obj
		}
	}
	o.Fatalf("the watch ended before %s was as wanted", name)
	return nil
}

// awaitGone waits until an object does not exist any more.
func (o *operatorTest) awaitGone(user *v1.User) {
	o.Helper()
	var list v1.UserList
	if err := o.cluster.List(o.Context(), &list, client.MatchingFields{"metadata.name": user.Name}); err != nil {
		o.Fatal(err)
	}
	if len(list.Items) == 0 {
		return
	}
	w, err := o.cluster.Watch(o.Context(), &v1.UserList{}, client.InNamespace(user.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		o.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if now, ok := event.Object.(*v1.User); ok && event.Type == watch.Deleted && now.UID == user.UID {
			return
		}
	}
	o.Fatalf("the watch ended before %s was gone", user.Name)
}

// checkSecrecy checks that no password is in the log of the operator, in Kubernetes events, or in
// an object that is no Secret.
func (o *operatorTest) checkSecrecy(log *lockedBuffer) {
	o.Helper()
	var events eventsv1.EventList
	var users v1.UserList
	var servers v1.ServerList
	if err := errors.Join(o.cluster.List(o.Context(), &events), o.cluster.List(o.Context(), &users), o.cluster.List(o.Context(), &servers)); err != nil {
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
func start(t *testing.T, plane *controlplane.ControlPlane, embedded string) *lockedBuffer {
	t.Helper()
	config := rest.CopyConfig(plane.Config())
	config.Impersonate.UserName = "system:serviceaccount:mysql-system:mysql-operator"
	log := &lockedBuffer{}
	options := ctrl.Options{Logger: zap.New(zap.WriteTo(log), zap.UseDevMode(true))}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = ptr.To(true) // another test may run it, too
	mgr, err := newManager(config, options, dependencies{connect: connectMySQL, newPassword: newPassword, embedded: embedded})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the operator ended: %v", err)
		}
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

func ready(u *v1.User) bool { return reason(u, condition.Ready) == condition.ReasonReady }

// reason returns the reason of a condition, if the condition is about the present spec.
func reason(obj *v1.User, kind string) string {
	for _, c := range obj.Status.Conditions {
		if c.Type == kind && c.ObservedGeneration == obj.Generation && (kind != condition.Ready || c.Status == metav1.ConditionTrue) {
			return c.Reason
		}
	}
	return ""
}
