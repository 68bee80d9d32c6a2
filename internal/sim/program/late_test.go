// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These operators do wrong after a timer that is shorter than the quiet time. The cluster is as it should be
// until then.
const (
	lingers = "leaves something a while after a deletion, if the creation of a Secret was ever refused"
	doubts  = "creates a Secret again a while after the answer was an error"
)

// aWhile is longer than the part of the quiet time for which a calm operator is waited for.
const aWhile = 600 * time.Millisecond

// linger looks a while after a deletion whether anything is left.
func (r *apps) linger(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	left := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "left"}}
	_, known := r.known[key.Name]
	switch {
	case r.bug != lingers || !known:
		return ctrl.Result{}, nil
	case r.tried.IsZero():
		r.tried = time.Now()
		fallthrough
	case time.Since(r.tried) < aWhile:
		return ctrl.Result{RequeueAfter: aWhile - time.Since(r.tried)}, nil
	}
	delete(r.known, key.Name)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(left), left); !r.refused || !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Create(ctx, left)
}

// doubt creates a Secret again, a while after the first try has failed.
func (r *apps) doubt(ctx context.Context, app *corev1.ConfigMap) (ctrl.Result, error) {
	switch {
	case r.bug != doubts || r.tried.IsZero():
		return ctrl.Result{}, nil
	case time.Since(r.tried) < aWhile:
		return ctrl.Result{RequeueAfter: aWhile - time.Since(r.tried)}, nil
	}
	r.tried = time.Time{}
	return ctrl.Result{}, r.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, GenerateName: "made-"}})
}
