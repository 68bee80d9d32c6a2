// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// accounts reconciles Users. Each has two accounts on its server, of which it uses one: the Secret
// says which. Another password is that of the other account.
type accounts struct {
	dependencies
	server *reference.Reference[*v1.User, *v1.Server]
}

// newUserServerReference returns the reference of Users to their Servers.
func newUserServerReference() *reference.Reference[*v1.User, *v1.Server] {
	return reference.New(reference.Options[*v1.User, *v1.Server]{
		Name:     "server", // the condition is v1.ConditionServerReady
		Target:   func(obj *v1.User) reference.Target { return reference.Target{Name: obj.Spec.Server} },
		NotReady: notReady,
	})
}

// step returns the step of accounts, with the conditions of a User and the watch of Servers.
func (a accounts) step() step.Step[*v1.User] {
	return external.Simple("User", external.Funcs[*v1.User]{
		Claim: a.claim, Claimed: a.claimed, CreateOrUpdate: a.createOrUpdate, UpdateStatus: a.updateStatus, Delete: a.delete,
		Refresh: poll, Watches: append(a.server.Watches(), step.Watch{Object: &corev1.Secret{}, Read: true, Owned: true}), // credentials, and passwords
		Conditions: append([]condition.Declaration{{Type: v1.ConditionServerFound}, {Type: v1.ConditionInSync, Informational: true}}, a.server.Conditions()...),
	})
}

// baseOf returns what the names of the accounts of a User begin with. The UID makes it unique, so
// that no User can take over an account that it has not made. MySQL allows 32 characters.
func baseOf(user *v1.User) string {
	return fmt.Sprintf("%s_%x", user.Spec.Name, sha256.Sum256([]byte(user.UID)))[:len(user.Spec.Name)+9]
}

// namesOf returns the names of both accounts.
func namesOf(user *v1.User) [2]string { return [2]string{baseOf(user) + "_a", baseOf(user) + "_b"} }

// claim waits for the Server, and records the name that the accounts will have.
func (a accounts) claim(ctx context.Context, req *step.Request[*v1.User]) error {
	if _, err := a.serverOf(ctx, req); err != nil {
		return err
	}
	if err := a.server.Await(ctx, req); err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, v1.AccountAnnotation, baseOf(req.Object))
	return nil
}

// claimed reports whether there may be accounts. Users can remove an annotation, but not change
// the status.
func (accounts) claimed(user *v1.User) bool {
	return user.Annotations[v1.AccountAnnotation] != "" || len(user.Status.Accounts) > 0
}

// createOrUpdate makes the accounts as the User wants them, and publishes the password.
func (a accounts) createOrUpdate(ctx context.Context, req *step.Request[*v1.User]) error {
	if err := a.server.Hold(ctx, req); err != nil {
		return err
	}
	server, found, err := a.connect(ctx, req)
	if err != nil {
		return err
	}
	next, err := a.update(ctx, &update{req: req, address: a.addressOf(found), accounts: server})
	if err = errors.Join(err, server.Close()); err != nil {
		return err
	}
	a.server.Settle(req)
	return ctrlkit.RequeueWithin(next)
}

// updateStatus only reads. The Server stays all the same.
func (a accounts) updateStatus(ctx context.Context, req *step.Request[*v1.User]) error {
	server, found, err := a.connect(ctx, req)
	if err != nil {
		return err
	}
	u := &update{req: req, address: a.addressOf(found), accounts: server}
	return errors.Join(u.observe(ctx), server.Close(), a.use(ctx, req))
}

// use records that a User whose policy only observes uses its Server.
func (a accounts) use(ctx context.Context, req *step.Request[*v1.User]) error {
	if err := a.server.Resolve(ctx, req); err != nil {
		return err
	}
	if err := req.Save(ctx); err != nil {
		return err
	}
	return a.server.Hold(ctx, req)
}

// delete drops both accounts. The Secret has an owner reference. A deletion that can't continue
// says what a person can do about it.
func (a accounts) delete(ctx context.Context, req *step.Request[*v1.User]) error {
	connected, _, err := a.connect(ctx, req)
	for _, name := range namesOf(req.Object) {
		if err == nil {
			err = connected.Drop(ctx, name)
		}
	}
	if connected != nil {
		err = errors.Join(err, connected.Close())
	}
	detach := fmt.Sprintf("annotate the User with %s=%s", policy.ReconcileAnnotation, policy.ReconcileDetachOnDelete)
	leave := fmt.Sprintf("to leave its accounts %s_* on the server, %s", baseOf(req.Object), detach)
	switch {
	case err == nil:
		return nil
	case len(ctrlkit.Waits(err)) > 0:
		if req.Conditions != nil { // it is nil for a User that is gone in spite of its finalizer
			missing, _ := req.Conditions.Get(v1.ConditionServerFound)
			req.Conditions.MarkUnhealthy(v1.ConditionServerFound, condition.SeverityError, missing.Reason, missing.Message+" again; "+leave)
		}
		return err
	}
	remedy := strings.TrimPrefix(failure.Classify(err).Remedy+"; "+leave, "; ")
	return failure.Mark(fmt.Errorf("%w; %s", err, leave), failure.WithRemedy(remedy))
}

// serverOf waits for the Server.
func (accounts) serverOf(ctx context.Context, req *step.Request[*v1.User]) (*v1.Server, error) {
	server, err := step.GetOrWait[*v1.Server](ctx, req, client.ObjectKey{Name: req.Object.Spec.Server})
	if len(ctrlkit.Waits(err)) > 0 {
		markMissing(req, "ServerNotFound", fmt.Sprintf("Server %s does not exist: create it", req.Object.Spec.Server))
	}
	return server, err
}

// connect waits for the Server and its credentials, and connects to it.
func (a accounts) connect(ctx context.Context, req *step.Request[*v1.User]) (Accounts, *v1.Server, error) {
	server, err := a.serverOf(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: server.Spec.CredentialsSecret})
	if err != nil {
		if len(ctrlkit.Waits(err)) > 0 {
			markMissing(req, "CredentialsNotFound",
				fmt.Sprintf("Secret %s with the credentials of Server %s does not exist: create it", server.Spec.CredentialsSecret, server.Name))
		}
		return nil, nil, err
	}
	connected, err := a.connectTo(ctx, server, secret, req.Object)
	if err == nil && req.Conditions != nil {
		req.Conditions.MarkHealthy(v1.ConditionServerFound, "Connected", "")
	}
	return connected, server, err
}

// markMissing sets the condition of a User that waits.
func markMissing(req *step.Request[*v1.User], reason, message string) {
	if req.Conditions != nil {
		req.Conditions.MarkUnhealthy(v1.ConditionServerFound, condition.SeverityInfo, reason, message)
	}
}

// overlapOf returns how long an old password works after the new one was published.
func overlapOf(user *v1.User) time.Duration {
	if user.Spec.Overlap == nil {
		return 10 * time.Minute
	}
	return user.Spec.Overlap.Duration
}
