// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// Annotations of the Secret, beside the password that they describe.
const (
	generationAnnotation = "mysql.ctrlkit.dev/password-generation"
	publishedAnnotation  = "mysql.ctrlkit.dev/published-at"
)

// publication is what the Secret of a User has. It is the only record of the password: what is in
// it works, or is made to work.
type publication struct {
	username   string // one of namesOf; empty if nothing usable is published
	password   string
	generation int64
	at         time.Time
}

// update is one comparison of a User with its server.
type update struct {
	req      *step.Request[*v1.User]
	address  string // of the server
	accounts Accounts
}

// update makes what is published work, publishes another password if that is requested, and drops
// the account of the old one when its time is over. It returns when to compare again.
//
//   - The account of a new password works before the password is published. A crash in between
//     loses a password that no client has; the next reconcile sets another one.
//   - The account of the old one is dropped only after the API server has confirmed which password
//     is published. A new request for a password waits until then.
func (a accounts) update(ctx context.Context, u *update) (time.Duration, error) {
	user := u.req.Object
	published, err := u.published(ctx)
	if err != nil {
		return 0, err
	}
	if published.username != "" {
		if err := u.ensure(ctx, published.username, published.password); err != nil {
			return 0, err
		}
	}
	ends := published.at.Add(overlapOf(user))
	if published.username == "" || published.generation != user.Spec.PasswordGeneration {
		old, err := u.exists(ctx, otherOf(user, published.username))
		if err != nil {
			return 0, err
		}
		if old && published.username != "" && u.req.Now.Before(ends) {
			u.settle(published, "OverlapNotOver", "the account of the last password works until "+ends.UTC().Format(time.RFC3339)+"; another one is made then")
			return min(poll, ends.Sub(u.req.Now)), u.publish(ctx, published)
		}
		last := cmp.Or(published.username, user.Status.Username) // a client may still use it
		published = publication{otherOf(user, last), a.newPassword(), user.Spec.PasswordGeneration, u.req.Now}
		if err := u.ensure(ctx, published.username, published.password); err != nil {
			return 0, err
		}
	}
	if err := u.publish(ctx, published); err != nil {
		return 0, err
	}
	return u.retire(ctx, published)
}

// published returns what the Secret has. The cache decides if nothing has to be changed; before
// anything is, the API server is asked.
func (u *update) published(ctx context.Context) (publication, error) {
	published, err := u.read(ctx, u.req.Client)
	if err != nil || u.req.APIReader == nil {
		return published, err
	}
	if published.username != "" && published.generation == u.req.Object.Spec.PasswordGeneration {
		works, err := u.accounts.Login(ctx, published.username, published.password)
		if err != nil {
			return published, err
		}
		old, err := u.exists(ctx, otherOf(u.req.Object, published.username))
		if err != nil || works && !old {
			return published, err
		}
	}
	return u.read(ctx, u.req.APIReader)
}

func (u *update) read(ctx context.Context, reader client.Reader) (publication, error) {
	user := u.req.Object
	var secret corev1.Secret
	if err := reader.Get(ctx, client.ObjectKey{Namespace: user.Namespace, Name: secretOf(user)}, &secret); err != nil {
		return publication{}, client.IgnoreNotFound(err)
	}
	names := namesOf(user)
	p := publication{username: string(secret.Data["username"]), password: string(secret.Data["password"])}
	if !metav1.IsControlledBy(&secret, user) || !slices.Contains(names[:], p.username) || p.password == "" {
		return publication{}, nil
	}
	// A value that can't be read is as if another password was requested long ago.
	p.generation, _ = strconv.ParseInt(secret.Annotations[generationAnnotation], 10, 64)
	p.at, _ = time.Parse(time.RFC3339, secret.Annotations[publishedAnnotation])
	return p, nil
}

// publish writes the Secret, if it is not as it should be.
func (u *update) publish(ctx context.Context, p publication) error {
	host, port, err := net.SplitHostPort(u.address)
	if err != nil {
		host, port = u.address, "3306"
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretOf(u.req.Object), Annotations: map[string]string{
			generationAnnotation: strconv.FormatInt(p.generation, 10), publishedAnnotation: p.at.UTC().Format(time.RFC3339),
		}},
		Data: map[string][]byte{"host": []byte(host), "port": []byte(port), "username": []byte(p.username), "password": []byte(p.password)},
	}
	if err := apply.Ensure(ctx, u.req, secret); err != nil {
		return err
	}
	u.req.Object.Status.Username, u.req.Object.Status.PasswordGeneration = p.username, p.generation
	return nil
}

// retire drops the account that is not published, when its time is over.
func (u *update) retire(ctx context.Context, p publication) (time.Duration, error) {
	old, ends := otherOf(u.req.Object, p.username), p.at.Add(overlapOf(u.req.Object))
	switch exists, err := u.exists(ctx, old); {
	case err != nil:
		return 0, err
	case exists && u.req.Now.Before(ends):
		u.settle(p, "OldPasswordWorks", "account "+old+" works until "+ends.UTC().Format(time.RFC3339))
		return min(poll, ends.Sub(u.req.Now)), u.syncGrants(ctx, old)
	case exists:
		if err := u.accounts.Drop(ctx, old); err != nil {
			return 0, err
		}
	}
	u.req.Object.Status.Accounts = []string{p.username}
	u.req.Conditions.MarkHealthy(v1.ConditionInSync, "InSync", "")
	return poll, nil
}

// settle sets the status while there are two accounts.
func (u *update) settle(p publication, reason, message string) {
	names := namesOf(u.req.Object)
	u.req.Object.Status.Accounts = names[:]
	u.req.Object.Status.Username, u.req.Object.Status.PasswordGeneration = p.username, p.generation
	u.req.Conditions.MarkHealthy(v1.ConditionInSync, reason, message)
}

// ensure makes an account with a password and the wanted grants, and checks that it works.
func (u *update) ensure(ctx context.Context, account, password string) error {
	works, err := u.accounts.Login(ctx, account, password)
	if err == nil && !works {
		err = u.accounts.SetPassword(ctx, account, password)
	}
	if err != nil {
		return err
	}
	if err := u.syncGrants(ctx, account); err != nil || works {
		return err
	}
	if works, err := u.accounts.Login(ctx, account, password); err != nil || !works {
		return cmp.Or(err, fmt.Errorf("account %s does not accept the password that was just set", account))
	}
	return nil
}

// syncGrants grants what is missing, and revokes what is too much.
func (u *update) syncGrants(ctx context.Context, account string) error {
	present, err := u.accounts.Grants(ctx, account)
	if err != nil {
		return err
	}
	missing, excess := difference(present, wantedGrants(u.req.Object, u.accounts.Target))
	if err := u.accounts.Grant(ctx, account, missing); err != nil {
		return err
	}
	return u.accounts.Revoke(ctx, account, excess)
}

func (u *update) exists(ctx context.Context, account string) (bool, error) {
	switch _, err := u.accounts.Grants(ctx, account); {
	case errors.Is(err, ErrNoAccount):
		return false, nil
	default:
		return err == nil, err
	}
}

// observe sets the status, and changes nothing.
func (u *update) observe(ctx context.Context) error {
	user := u.req.Object
	var accounts, differences []string
	for _, name := range namesOf(user) {
		present, err := u.accounts.Grants(ctx, name)
		if errors.Is(err, ErrNoAccount) {
			continue
		}
		if err != nil {
			return err
		}
		accounts = append(accounts, name)
		missing, excess := difference(present, wantedGrants(user, u.accounts.Target))
		if len(missing) > 0 {
			differences = append(differences, name+" lacks "+missing.String())
		}
		if len(excess) > 0 {
			differences = append(differences, name+" has too much: "+excess.String())
		}
	}
	user.Status.Accounts = accounts
	published, err := u.read(ctx, u.req.Client)
	if err != nil {
		return err
	}
	user.Status.Username, user.Status.PasswordGeneration = published.username, published.generation
	switch {
	case !slices.Contains(accounts, published.username):
		differences = append(differences, "there is no account with a published password")
	case published.generation != user.Spec.PasswordGeneration:
		differences = append(differences, "another password is requested")
	}
	if len(differences) > 0 {
		u.req.Conditions.MarkUnhealthy(v1.ConditionInSync, condition.SeverityInfo, "Differs", strings.Join(differences, "; "))
		return nil
	}
	u.req.Conditions.MarkHealthy(v1.ConditionInSync, "InSync", "")
	return nil
}

// otherOf returns the account of a User that is not the given one, by default the first.
func otherOf(user *v1.User, account string) string {
	names := namesOf(user)
	if account == names[0] {
		return names[1]
	}
	return names[0]
}

func secretOf(user *v1.User) string { return cmp.Or(user.Spec.SecretName, user.Name+"-mysql") }

// newPassword returns a random password with at least one of each kind of characters, which
// password policies ask for.
func newPassword() string { return rand.Text() + "-a1A" }
