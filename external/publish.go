// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// publish writes the connection details to their Secret.
func (s *session[T]) publish(ctx context.Context) error {
	if s.options.ConnectionSecret == nil || len(s.seen.Connection) == 0 {
		return nil
	}
	name := s.options.ConnectionSecret(s.req.Object)
	if name == "" {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: s.seen.Connection}
	if err := step.EnsureChild(ctx, s.req, secret); err != nil {
		return fmt.Errorf("publishing the connection details: %w", err)
	}
	return nil
}

// shareObserved does for an object that may not change its resource what changes nothing outside. The
// connection details of another object's resource are not published: who may create objects could
// read them.
func shareObserved[T client.Object](ctx context.Context, s *session[T]) error {
	if s.seen.State != UpToDate && s.seen.State != Drifted {
		return nil
	}
	if _, err := s.lateInitialize(ctx); err != nil {
		return err
	}
	if standing := (ownership[T]{s}).standing(); standing == ours || standing == unowned {
		return s.publish(ctx)
	}
	return nil
}

// lateInitialize writes to the spec what the system has chosen, and reports whether it has: then
// the object is another one, and the reconcile that follows sees it.
func (s *session[T]) lateInitialize(ctx context.Context) (bool, error) {
	late, ok := s.client.(LateInitializer[T])
	if !ok || !lifecycle.PolicyOf(s.req).Allows(policy.VerbLateInitialize) {
		return false, nil
	}
	before := s.req.Object
	after := before.DeepCopyObject().(T) //nolint:errcheck // a copy has the type
	late.LateInitialize(after)
	if reflect.DeepEqual(before, after) {
		return false, nil
	}
	if err := s.req.Save(ctx); err != nil { // the patch has a newer version
		return false, err
	}
	from, to := before.DeepCopyObject().(T), before.DeepCopyObject().(T) //nolint:errcheck // copies have the type
	late.LateInitialize(to)
	if err := s.req.Client.Patch(ctx, to, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("writing what the system has chosen: %w", err)
	}
	_, err := ctrlkit.PollFor("the fields that the system has chosen", s.options.Busy)
	return true, err
}
