// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups=mysql.ctrlkit.dev,resources=servers;users,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=mysql.ctrlkit.dev,resources=servers/status;users/status,verbs=patch
// +kubebuilder:rbac:groups=mysql.ctrlkit.dev,resources=users/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

//go:generate go tool controller-gen rbac:roleName=mysql-operator paths=. output:rbac:dir=config/rbac
//go:generate go tool ctrlkit generate finalizer-policy --finalizer mysql.ctrlkit.dev/user --output config/admission/policy.yaml users.v1.mysql.ctrlkit.dev

// dependencies are what the operator uses outside of the cluster.
type dependencies struct {
	connect     Connect
	embedded    string        // the address of the embedded server; empty if there is none
	newPassword func() string // returns another one each time
}

// addControllers adds the controllers of Servers and of Users to a manager.
func addControllers(mgr ctrl.Manager, d dependencies, observers ...journal.Observer) error {
	recorder := mgr.GetEventRecorder("mysql-operator")
	servers, err := step.New(step.Options[*v1.Server]{
		Name: "server", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: recorder, Observers: observers, SkipUnchanged: true,
	}, connection{d})
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).For(&v1.Server{})
	if err := servers.Complete(servers.WatchNamed(b, &corev1.Secret{}, func(s *v1.Server) []client.ObjectKey {
		return []client.ObjectKey{{Name: s.Spec.CredentialsSecret}}
	})); err != nil {
		return err
	}

	users, err := step.New(step.Options[*v1.User]{
		Name: "user", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: recorder, Observers: observers, SkipUnchanged: true,
	}, lifecycle.New("User", accounts{d}, lifecycle.Options{Refresh: poll}))
	if err != nil {
		return err
	}
	b = ctrl.NewControllerManagedBy(mgr).For(&v1.User{}).Owns(&corev1.Secret{})
	b.Watches(&corev1.Secret{}, users.WrapHandler(handler.EnqueueRequestsFromMapFunc(usersOfCredentials(mgr.GetClient()))))
	return users.Complete(users.WatchNamed(b, &v1.Server{}, func(u *v1.User) []client.ObjectKey {
		return []client.ObjectKey{{Name: u.Spec.Server}}
	}))
}

// usersOfCredentials returns the Users whose Server has its credentials in a Secret. The Server
// names the Secret, so that a watch for what a User names is not enough.
func usersOfCredentials(cache client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []reconcile.Request {
		var servers v1.ServerList
		var users v1.UserList
		inNamespace := client.InNamespace(secret.GetNamespace())
		if cache.List(ctx, &servers, inNamespace) != nil || cache.List(ctx, &users, inNamespace) != nil {
			return nil // the cache is not there any more
		}
		named := map[string]bool{}
		for i := range servers.Items {
			named[servers.Items[i].Name] = servers.Items[i].Spec.CredentialsSecret == secret.GetName()
		}
		var requests []reconcile.Request
		for i := range users.Items {
			if named[users.Items[i].Spec.Server] {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&users.Items[i])})
			}
		}
		return requests
	}
}
