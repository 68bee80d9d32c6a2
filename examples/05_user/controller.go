// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups=mysql.ctrlkit.dev,resources=servers;users;databases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=mysql.ctrlkit.dev,resources=servers/status;users/status;databases/status,verbs=patch
// +kubebuilder:rbac:groups=mysql.ctrlkit.dev,resources=servers/finalizers;users/finalizers;databases/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

//go:generate go tool controller-gen rbac:roleName=mysql-operator paths=. output:rbac:dir=config/rbac
//go:generate go tool ctrlkit generate finalizer-policy --finalizer mysql.ctrlkit.dev/user --output config/admission/policy.yaml users.v1.mysql.ctrlkit.dev
//go:generate go tool ctrlkit generate finalizer-policy --finalizer mysql.ctrlkit.dev/database --output config/admission/databases.yaml databases.v1.mysql.ctrlkit.dev

// dependencies are what the operator uses outside of the cluster.
type dependencies struct {
	connect     Connect
	embedded    string        // the address of the embedded server; empty if there is none
	newPassword func() string // returns another one each time
	claims      string        // the namespace of the claims of databases; empty for that of the operator
}

// addControllers adds the controllers of Servers and of Users to a manager.
func addControllers(mgr ctrl.Manager, d dependencies) error {
	serverOf, credentialsOf, userServerOf := newServerReference(), newCredentialsReference(), newUserServerReference()
	ofUsers := accounts{d, userServerOf}
	err := step.Control(mgr, step.Options[*v1.Server]{Name: "server", SkipUnchanged: true},
		d.connection(), reference.Require(reference.Of[*v1.Server](credentialsOf)), reference.Protect[*v1.Server](serverOf, userServerOf))
	if err != nil {
		return err
	}
	// Credentials stay as long as a Server has Users and Databases to delete with them, also when
	// all of their namespace is deleted at once.
	guard := reference.GuardOptions{Name: "mysql-operator", Recorder: mgr.GetEventRecorder("mysql-operator"), Observers: operator.ObserversOf(mgr)}
	if err := reference.Guard(mgr, guard, credentialsOf); err != nil {
		return err
	}
	err = step.Control(mgr, step.Options[*v1.User]{Name: "user", SkipUnchanged: true}, ofUsers.step())
	if err != nil {
		return err
	}
	return addDatabases(mgr, d, serverOf)
}

// addDatabases adds the controller of Databases, their audits and imports.
func addDatabases(mgr ctrl.Manager, d dependencies, serverOf *reference.Reference[*v1.Database, *v1.Server]) error {
	err := step.Control(mgr, step.Options[*v1.Database]{Name: "database", SkipUnchanged: true}, external.New("Database", databases{d, serverOf}, external.Options[*v1.Database]{
		Identity: external.ByName(databaseName), Poll: poll, References: []reference.Of[*v1.Database]{serverOf}, Reads: []client.Object{&corev1.Secret{}},
		// MySQL stores no owners: whose a database is, is a claim. Several Servers may have one
		// address.
		ClaimNamespace: d.claims,
		Calls:          external.Calls[*v1.Database]{System: func(obj *v1.Database) string { return obj.Status.Address }},
	}))
	if err != nil {
		return err
	}
	if err := external.ServeAudits(mgr, d.audits(mgr.GetAPIReader())); err != nil { // for ctrlkit orphans
		return err
	}
	return external.ServeImports(mgr, d.imports(mgr.GetAPIReader())) // for ctrlkit import
}
