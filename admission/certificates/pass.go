// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// requestTimeout bounds a pass, so that an API server that doesn't answer does not end the rotation.
const requestTimeout = time.Minute

// pass brings the Secret, then every caBundle, and then what is served up to date. The order is what
// makes it safe to stop at any point, and for other replicas to be at another one.
func (r *Rotator) pass(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	logger := log.FromContext(ctx).WithName("certificates").WithValues("secret", r.options.Secret)
	now := time.Now()

	stored, err := r.store(log.IntoContext(ctx, logger), now)
	var notes []string
	if err == nil {
		r.latest = stored
		notes, err = r.publish(ctx, stored, now)
		r.serve(stored, now)
	}
	if r.ready = r.ready || err == nil; r.ready {
		r.state.Store(new(error))
	} else {
		r.state.Store(&err)
	}
	r.report(ctx, notes, err)
	return err
}

// store reads the Secret, and writes what it should hold if that is something else. Of several
// replicas that write at the same time one wins; the others read what it has written.
func (r *Rotator) store(ctx context.Context, now time.Time) (*contents, error) {
	var stored *contents
	lost := func(err error) bool { // a race with another replica
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
	}
	err := retry.OnError(retry.DefaultBackoff, lost, func() error {
		secret := &corev1.Secret{}
		err := r.client.Get(ctx, r.options.Secret, secret)
		found := err == nil
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if found {
			if err := r.checkOwner(secret); err != nil {
				return err
			}
		}
		current := r.latest // what is gone or broken is made again as it was
		if parsed, err := parse(secret.Data); err == nil {
			current = parsed
		} else if hasData(secret) {
			log.FromContext(ctx).Info("The Secret is broken and is made anew", "problem", err.Error(), "fromMemory", current != nil)
		}
		next, why, err := r.options.renew(current, now, r.isTrusted(current, now))
		if err != nil {
			return err
		}
		stored = next
		if found && holds(secret, next) {
			return nil
		}
		log.FromContext(ctx).Info("Writing certificates", "why", cmp.Or(why, "the Secret was not as it was"), "expires", next.serving.Leaf.NotAfter)
		return r.write(ctx, secret, next, found)
	})
	if err != nil {
		return nil, fmt.Errorf("keeping certificates in Secret %s: %w", r.options.Secret, err)
	}
	return stored, nil
}

func (r *Rotator) write(ctx context.Context, secret *corev1.Secret, c *contents, found bool) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, c.data)
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[ServiceAnnotation] = r.options.Service.String()
	if found {
		return r.client.Update(ctx, secret) // with the resource version that was read
	}
	secret.Namespace, secret.Name, secret.Type = r.options.Secret.Namespace, r.options.Secret.Name, corev1.SecretTypeTLS
	return r.client.Create(ctx, secret)
}

// checkOwner returns an error if someone else has made the Secret. One without data may be filled:
// who installs the operator can make it, so that the operator needs no permission to create Secrets.
func (r *Rotator) checkOwner(secret *corev1.Secret) error {
	const remedy = "delete it, or name another one in Options.Secret"
	switch owner, marked := secret.Annotations[ServiceAnnotation]; {
	case marked && owner != r.options.Service.String():
		return fmt.Errorf("it has the certificates of the Service %s, not of %s: %s", owner, r.options.Service, remedy)
	case !marked && hasData(secret):
		return fmt.Errorf("it was made by someone else, without the annotation %s: %s", ServiceAnnotation, remedy)
	}
	return nil
}

func hasData(secret *corev1.Secret) bool {
	for _, value := range secret.Data {
		if len(value) > 0 {
			return true
		}
	}
	return false
}

func holds(secret *corev1.Secret, c *contents) bool {
	for key, value := range c.data {
		if !bytes.Equal(secret.Data[key], value) {
			return false
		}
	}
	return true
}

// publish writes the authorities to every caBundle, and remembers since when all have them. What is
// served needs its authority as long as it is served, also when the Secret was made anew without it.
func (r *Rotator) publish(ctx context.Context, c *contents, now time.Time) ([]string, error) {
	authorities := slices.Clone(c.authorities)
	if served := r.served.Load(); served != nil {
		authorities = append(authorities, alive(served.authorities, now)...)
	}
	wrote, notes, err := r.trust(ctx, authorities, now)
	switch {
	case err != nil:
		r.trusted = nil
	case wrote || !bytes.Equal(r.trusted, c.data[authorityKey]):
		r.trusted, r.since = c.data[authorityKey], now
	}
	return notes, err
}

// isTrusted reports whether every webhook has had the authorities of c for an interval. API servers
// read configurations through a cache, which takes a moment.
func (r *Rotator) isTrusted(c *contents, now time.Time) bool {
	return c != nil && bytes.Equal(r.trusted, c.data[authorityKey]) && now.Sub(r.since) >= r.options.Interval
}

// serve replaces what is served, unless some webhook may not trust the new certificate yet.
func (r *Rotator) serve(c *contents, now time.Time) {
	served := r.served.Load()
	if served == nil || expired(served.serving.Leaf, now) || r.isTrusted(c, now) ||
		bytes.Equal(served.serving.Leaf.AuthorityKeyId, c.serving.Leaf.AuthorityKeyId) {
		r.served.Store(c)
	}
}

// report logs what is to be said, once as long as it stays the same.
func (r *Rotator) report(ctx context.Context, notes []string, err error) {
	logger := log.FromContext(ctx).WithName("certificates")
	if err != nil && !errors.Is(err, context.Canceled) {
		notes = append(notes, err.Error())
	}
	for i, note := range notes {
		switch {
		case slices.Contains(r.notes, note):
		case err != nil && i == len(notes)-1:
			logger.Error(err, "The certificates of the webhooks are not up to date")
		default:
			logger.Info("A caBundle is not written", "reason", note)
		}
	}
	r.notes = notes
}
