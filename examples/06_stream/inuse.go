// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/step"
)

// inUse is the step that keeps a Stream that is being deleted until nothing uses it any more. It
// comes after the stream, because steps clean up in reverse order.
type inUse struct{}

var (
	_ step.Claimer[*v1.Stream]           = inUse{}
	_ step.Watcher[*v1.Stream]           = inUse{}
	_ step.ConditionDeclarer[*v1.Stream] = inUse{}
)

// Name implements [step.Step].
func (inUse) Name() string { return "Consumers" }

// Conditions implements [step.ConditionDeclarer].
func (inUse) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: v1.ConditionInUse, Polarity: condition.PolarityAbnormalTrue, Weight: condition.WeightInformational}}
}

// Watches makes the end of a Consumer reconcile its Stream.
func (inUse) Watches() []step.Watch {
	return []step.Watch{{
		Object: &v1.Consumer{},
		Named: func(obj client.Object, _ schema.GroupKind) []client.ObjectKey {
			return []client.ObjectKey{{Namespace: obj.GetNamespace(), Name: obj.(*v1.Consumer).Spec.Stream}} //nolint:errcheck // it has the type
		},
		Changed: func(_, now client.Object) bool { return now == nil },
	}}
}

// Claim implements [step.Claimer]: without it, the finalizer would be written before the claim of
// the stream, in a request of its own.
func (inUse) Claim(context.Context, *step.Request[*v1.Stream]) error { return step.ErrNothingToClaim }

// Do implements [step.Step].
func (inUse) Do(_ context.Context, req *step.Request[*v1.Stream]) (ctrl.Result, error) {
	req.Conditions.MarkHealthy(v1.ConditionInUse, "NotDeleted", "")
	return ctrlkit.NoRequeue()
}

// isClaimed reports whether there may be a consumer. One that waits for the Stream is not waited
// for.
func isClaimed(obj *v1.Consumer) bool { return external.IDOf(obj) != "" || obj.Status.Consumer != "" }

// Cleanup implements [step.Cleaner]: it waits for the end of all Consumers. It asks the API
// server, because the cache may not have the youngest yet.
func (inUse) Cleanup(ctx context.Context, req *step.Request[*v1.Stream]) (ctrl.Result, error) {
	obj := req.Object
	var using []string
	for _, reader := range []client.Reader{req.Client, req.APIReader} {
		var all v1.ConsumerList
		if err := reader.List(ctx, &all, client.InNamespace(obj.Namespace)); err != nil {
			return ctrlkit.RequeueIfError(fmt.Errorf("listing Consumers: %w", err))
		}
		for i := range all.Items {
			if consumer := &all.Items[i]; consumer.Spec.Stream == obj.Name && isClaimed(consumer) {
				using = append(using, "Consumer "+client.ObjectKeyFromObject(consumer).String())
			}
		}
		if len(using) > 0 {
			break
		}
	}
	if len(using) == 0 {
		if req.Conditions != nil {
			req.Conditions.MarkHealthy(v1.ConditionInUse, "NotUsed", "")
		}
		return ctrlkit.NoRequeue()
	}
	slices.Sort(using)
	who := strings.Join(using[:min(len(using), 5)], ", ")
	if more := len(using) - 5; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	if req.Conditions != nil {
		req.Conditions.MarkUnhealthy(v1.ConditionInUse, condition.SeverityInfo, "UsedByConsumers", "it is deleted after "+who)
	}
	return ctrlkit.WaitFor(who + " to be deleted")
}
