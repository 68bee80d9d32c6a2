// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// fakeDatabase is a database whose users another controller creates.
type fakeDatabase struct{ passwords map[string]string }

var database = sim.NewFake("database", func() *fakeDatabase { return &fakeDatabase{passwords: map[string]string{}} })

// users plays that controller: for a Secret with the label user, it creates a user in the database, in
// the same one that the operator of this run uses.
var users = player.New(func(s *player.Stage, secret *corev1.Secret) error {
	if secret.Labels["user"] == "" || secret.Annotations["created"] != "" {
		return nil
	}
	database.Of(s).passwords[secret.Labels["user"]] = string(secret.Data["password"])
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "created", "true")
	return s.Update(secret)
})

// logIn logs a user in, as the operator does when the other controller has created the user.
func logIn(ctx context.Context, p *sim.Process, user, password string) error {
	return p.Call(ctx, sim.Call{System: "database", Verb: "login", What: user}, func() error {
		if database.Of(p).passwords[user] != password {
			return errors.New("access denied")
		}
		return nil
	})
}

// A player uses the fake of its run as the operator and the script do.
func ExampleFake_Of() {
	sim.Run(t, sim.Workload{
		Players: player.Defaults().With(users),
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Complete(reconcile.Func(
				func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					var secret corev1.Secret
					err := mgr.GetClient().Get(ctx, req.NamespacedName, &secret)
					if err != nil || secret.Annotations["created"] == "" {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, logIn(ctx, p, secret.Labels["user"], string(secret.Data["password"]))
				}))
		}),
		Script: func(w *sim.World) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app", Labels: map[string]string{"user": "app"}}}
			secret.Data = map[string][]byte{"password": []byte("swordfish")}
			w.Create(secret)
			w.Settle()
			if n := len(database.Of(w).passwords); n != 1 {
				t.Errorf("the database has %d users", n)
			}
		},
	})
}
