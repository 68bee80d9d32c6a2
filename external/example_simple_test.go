// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// loginAnnotation records the name of a user in the database.
const loginAnnotation = "example.com/login"

// A server is the client of a database: it prints what it does.
type server struct{}

func (server) ensure(login string) error { fmt.Println("  CREATE USER", login); return nil }
func (server) drop(login string) error   { fmt.Println("  DROP USER", login); return nil }
func (server) exists(login string) (bool, error) {
	fmt.Println("  SELECT", login)
	return login != "", nil
}

// users reconciles Users: what an operator writes.
type users struct{ server server }

// step is how the functions become a step.
func (u users) step() step.Step[*User] {
	return external.Simple("User", external.Funcs[*User]{
		Claim: u.Claim, Claimed: u.Claimed, CreateOrUpdate: u.CreateOrUpdate, UpdateStatus: u.UpdateStatus, Delete: u.Delete,
		Operator: "prod/mysql-operator", Watches: watchesOfServers(),
	})
}

// Claim waits for the server of the user, and records the name that the user will have.
func (u users) Claim(ctx context.Context, req *step.Request[*User]) error {
	if _, err := step.GetOrWait[*corev1.ConfigMap](ctx, req, serverOf(req.Object)); err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, loginAnnotation, req.Object.Spec.Name)
	return nil
}

// Claimed reports whether a user may exist.
func (u users) Claimed(obj *User) bool { return obj.Annotations[loginAnnotation] != "" }

// CreateOrUpdate makes the user.
func (u users) CreateOrUpdate(_ context.Context, req *step.Request[*User]) error {
	return u.server.ensure(req.Object.Annotations[loginAnnotation])
}

// UpdateStatus is for objects whose policy is to skip them.
func (u users) UpdateStatus(_ context.Context, req *step.Request[*User]) error {
	exists, err := u.server.exists(req.Object.Annotations[loginAnnotation])
	req.Object.Status.Observed = fmt.Sprint(exists)
	return err
}

// Delete removes the user.
func (u users) Delete(_ context.Context, req *step.Request[*User]) error {
	return u.server.drop(req.Object.Annotations[loginAnnotation])
}

// watchesOfServers end the waits for servers.
func watchesOfServers() []step.Watch {
	return []step.Watch{{Object: &corev1.ConfigMap{}, NamedBy: func(obj client.Object) []client.ObjectKey {
		return []client.ObjectKey{serverOf(obj.(*User))} //nolint:errcheck // the engine is for Users
	}}}
}

func serverOf(obj *User) client.ObjectKey { return client.ObjectKey{Name: obj.Spec.Server} }

// newOperator returns the engine of an operator, and a client of its cluster.
func newOperator() (client.Client, *step.Engine[*User]) {
	api := sim.NewServer(sim.ServerOptions{}) // an API server in memory
	if err := api.Install(userKind.Definition()); err != nil {
		panic(err)
	}
	c, err := client.New(api.Config(), client.Options{Scheme: scheme})
	if err != nil {
		panic(err)
	}
	engine, err := step.New(step.Options[*User]{Name: "users", Client: c, APIReader: c}, users{}.step())
	if err != nil {
		panic(err)
	}
	return c, engine
}

// A user of a database waits for its server, is claimed and created, left alone for a while, and
// dropped.
func ExampleSimple() {
	c, engine := newOperator()
	ctx, app := context.Background(), &User{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}, Spec: UserSpec{Name: "app", Server: "mysql"}}
	key := client.ObjectKeyFromObject(app)
	then := func(what string, do func() error) {
		fmt.Println(what)
		if err := do(); err != nil {
			panic(err)
		}
		if _, err := engine.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
			panic(err)
		}
		if err := c.Get(ctx, key, app); err != nil {
			fmt.Println("  the object is gone")
			return
		}
		for _, shown := range app.Status.Conditions {
			if slices.Contains([]string{"Ready", "Managed"}, shown.Type) {
				fmt.Printf("  %s is %s: %s\n", shown.Type, shown.Status, shown.Reason)
			}
		}
	}
	then("created", func() error { return c.Create(ctx, app) })
	then("its server is there", func() error {
		return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mysql"}})
	})
	then("skipped", func() error {
		app.Annotations["policy.ctrlkit.dev/reconcile"] = "skip"
		return c.Update(ctx, app)
	})
	then("managed again", func() error {
		delete(app.Annotations, "policy.ctrlkit.dev/reconcile")
		return c.Update(ctx, app)
	})
	then("deleted", func() error { return c.Delete(ctx, app) })
	// Output:
	// created
	//   Ready is False: Waiting
	//   Managed is True: Managed
	// its server is there
	//   CREATE USER app
	//   Ready is True: Ready
	//   Managed is True: Managed
	// skipped
	//   SELECT app
	//   Ready is True: Ready
	//   Managed is False: Skipped
	// managed again
	//   CREATE USER app
	//   Ready is True: Ready
	//   Managed is True: Managed
	// deleted
	//   DROP USER app
	//   the object is gone
}
