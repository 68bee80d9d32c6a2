// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// poll is how often a server is compared with the cluster: no watch reports what is changed there.
const poll = time.Minute

func (d dependencies) addressOf(server *v1.Server) string {
	if server.Spec.Embedded {
		return d.embedded
	}
	return server.Spec.Address
}

// connectTo connects to a Server as its administrator. The error is marked with what a person can
// do about it.
func (d dependencies) connectTo(ctx context.Context, server *v1.Server, credentials *corev1.Secret, object client.Object) (Accounts, error) {
	login := Login{
		Address: d.addressOf(server), TLS: server.Spec.TLS,
		Username: string(credentials.Data["username"]), Password: string(credentials.Data["password"]),
	}
	name := client.ObjectKeyFromObject(credentials)
	switch {
	case login.Address == "":
		return nil, broken(fmt.Errorf("the operator has no embedded server, which Server %s wants", server.Name), "EmbeddedServerDisabled", "set spec.address instead of spec.embedded")
	case login.Username == "":
		return nil, broken(fmt.Errorf("the key username is missing in Secret %s", name), "CredentialsIncomplete", "add the keys username and password to the Secret")
	}
	accounts, err := d.connect(ctx, login, object)
	if errors.Is(err, ErrRejected) {
		return nil, broken(err, "CredentialsRejected", fmt.Sprintf("correct the username and the password in Secret %s", name))
	}
	return accounts, err
}

// broken marks an error that only a change by a person ends. The remedy is in its text, too, and
// with it in the condition.
func broken(err error, reason, remedy string) error {
	return failure.Terminal(fmt.Errorf("%w: %s", err, remedy), reason, remedy)
}

// newCredentialsReference returns the reference of Servers to the Secrets with their credentials.
func newCredentialsReference() *reference.Reference[*v1.Server, *corev1.Secret] {
	return reference.New(reference.Options[*v1.Server, *corev1.Secret]{
		Name:   "credentials", // the condition is CredentialsReady
		Target: func(obj *v1.Server) reference.Target { return reference.Target{Name: obj.Spec.CredentialsSecret} },
	})
}

// connection is the step that finds out whether the administrator of a Server can log in.
func (d dependencies) connection() step.Step[*v1.Server] {
	return step.Step[*v1.Server]{Name: "Connection", Conditions: []condition.Declaration{{Type: v1.ConditionReachable}}, Do: d.logIn}
}

func (d dependencies) logIn(ctx context.Context, req *step.Request[*v1.Server]) error {
	server := req.Object
	server.Status.Address, server.Status.Version = d.addressOf(server), ""
	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: server.Spec.CredentialsSecret})
	if err != nil {
		if len(ctrlkit.Waits(err)) > 0 {
			req.Conditions.MarkUnhealthy(v1.ConditionReachable, condition.SeverityInfo, "SecretNotFound",
				fmt.Sprintf("Secret %s does not exist: create it with the keys username and password", server.Spec.CredentialsSecret))
		}
		return err
	}
	accounts, err := d.connectTo(ctx, server, secret, server)
	if err != nil {
		return err
	}
	server.Status.Version = accounts.Version()
	req.Conditions.MarkHealthy(v1.ConditionReachable, "LoggedIn", "")
	if err := accounts.Close(); err != nil {
		return err
	}
	return ctrlkit.RequeueWithin(poll)
}
