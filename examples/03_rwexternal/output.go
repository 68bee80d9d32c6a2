// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// ownerAnnotation names the RWExternal of an output: an owner reference cannot cross namespaces. It
// has the name and not the UID, so that an output which a predecessor of the same name could not
// delete does not block its successor.
const ownerAnnotation = "demo.ctrlkit.dev/owner"

func ownerOf(obj *v1.RWExternal) string { return obj.Namespace + "/" + obj.Name }

// writeOutput maintains the output Secret, and deletes it when the RWExternal is deleted.
type writeOutput struct{}

var (
	_ step.Cleaner[*v1.RWExternal]           = writeOutput{}
	_ step.ConditionDeclarer[*v1.RWExternal] = writeOutput{}
)

func (writeOutput) Name() string { return "WriteOutput" }

func (writeOutput) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: v1.ConditionOutputReady}}
}

func (writeOutput) Do(ctx context.Context, req *step.Request[*v1.RWExternal]) (ctrl.Result, error) {
	numbers, ok := step.Lookup(req, divisionKey)
	if !ok {
		return ctrlkit.WaitFor("the input")
	}
	if numbers.divisor == 0 { // a valid input without a result
		req.Conditions.MarkUnhealthy(v1.ConditionOutputReady, condition.SeverityError, "DivisorIsZero",
			fmt.Sprintf("division by zero: change the key divisor of Secret %s", inputOf(req.Object)))
		return ctrlkit.Exit()
	}
	data := map[string][]byte{
		"quotient":  []byte(strconv.FormatInt(numbers.dividend/numbers.divisor, 10)),
		"remainder": []byte(strconv.FormatInt(numbers.dividend%numbers.divisor, 10)),
	}
	if err := write(ctx, req, data); err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	key := outputOf(req.Object)
	req.Object.Status.OutputSecret = &v1.SecretReference{Namespace: key.Namespace, Name: key.Name}
	req.Conditions.MarkHealthy(v1.ConditionOutputReady, "OutputWritten", "")
	return ctrlkit.NoRequeue()
}

// write creates or updates the output. It writes nothing if the output is up to date.
func write(ctx context.Context, req *step.Request[*v1.RWExternal], data map[string][]byte) error {
	key := outputOf(req.Object)
	var secret corev1.Secret
	err := req.Client.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		secret = corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{ownerAnnotation: ownerOf(req.Object)},
		}, Data: data}
		if err := req.Client.Create(ctx, &secret); err != nil {
			return fmt.Errorf("creating Secret %s: %w", key, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if secret.Annotations[ownerAnnotation] != ownerOf(req.Object) {
		return failure.Mark(fmt.Errorf("the output, Secret %s, exists and has another owner: delete it, or create an RWExternal with another outputSecret", key),
			failure.WithReason("OutputTaken"), failure.WithSeverity(condition.SeverityError), failure.WithClass(failure.ClassTerminal))
	}
	if maps.EqualFunc(secret.Data, data, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	secret.Data = data
	if err := req.Client.Update(ctx, &secret); err != nil {
		return fmt.Errorf("updating Secret %s: %w", key, err)
	}
	return nil
}

// Cleanup deletes the output, unless it has another owner.
func (writeOutput) Cleanup(ctx context.Context, req *step.Request[*v1.RWExternal]) (ctrl.Result, error) {
	key := outputOf(req.Object)
	var secret corev1.Secret
	// This is the last opportunity to delete the output, and a stale cache may not have what the
	// previous reconcile created: read from the API server.
	err := req.APIReader.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) || err == nil && secret.Annotations[ownerAnnotation] != ownerOf(req.Object) {
		return ctrlkit.NoRequeue()
	}
	if err != nil {
		return ctrlkit.RequeueIfError(fmt.Errorf("reading Secret %s: %w", key, err))
	}
	err = req.Client.Delete(ctx, &secret, client.Preconditions{UID: &secret.UID})
	if apierrors.IsNotFound(err) {
		// It existed a moment ago. Most likely another client deleted it, but only another read can
		// exclude a wrong answer.
		return ctrlkit.PollFor(fmt.Sprintf("Secret %s to be gone", key), time.Second)
	}
	if err != nil {
		return ctrlkit.RequeueIfError(fmt.Errorf("deleting Secret %s: %w", key, err))
	}
	return ctrlkit.NoRequeue()
}
