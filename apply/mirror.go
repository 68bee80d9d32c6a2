// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/engine/health"
	"github.com/ctrlkit/ctrlkit/step"
)

// Mirror sets a declared condition of the object of a request by how another object is, such as a
// child that has conditions of its own: with the reason and the message of the condition that
// decides there, by its health.
//
//	var database dbv1.Database
//	...
//	apply.Mirror(req, "DatabaseReady", &database)
//
// A failure has severity Warning, because its own controller may still mend it. All else that is
// not ready, being deleted included, has severity Info.
func Mirror[T client.Object](req *step.Request[T], conditionType string, of client.Object) {
	gvk, err := req.Client.GroupVersionKindFor(of)
	if err != nil {
		gvk = of.GetObjectKind().GroupVersionKind()
	}
	s := health.OfKind(of, gvk)
	severity := condition.SeverityInfo
	switch s.State {
	case health.StateReady:
		req.Conditions.MarkHealthy(conditionType, cmp.Or(s.Reason, condition.ReasonReady), "")
		return
	case health.StateFailed:
		severity = condition.SeverityWarning
	}
	message := cmp.Or(gvk.Kind, "object") + " " + of.GetName() + " is " + s.String()
	req.Conditions.MarkUnhealthy(conditionType, severity, cmp.Or(s.Reason, string(s.State)), message)
}
