// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package condition keeps the conditions of an object: it initializes those that are declared,
// summarizes them in Ready, and keeps them from changing without a reason.
//
//	set, err := condition.NewSet(obj, condition.Options{Declared: []condition.Declaration{
//		{Type: "SecretFound"},
//		{Type: "Degraded", AbnormalTrue: true},
//	}})
//	set.MarkUnhealthy("SecretFound", condition.SeverityInfo, "NotFound", `waiting for Secret "db"`)
//	set.Summarize()
//	err = set.Store(obj)
//
// A [Set] is the view of one reconcile:
//
//   - Declared conditions are present from the first reconcile on, also on objects that an older
//     version of the operator left without them. A declared condition that is retired is removed.
//   - Conditions of other controllers are left alone.
//   - Ready is computed from the declared conditions, the worst first, and with it Reconciling and
//     Stalled, the conditions of kstatus, which "kubectl wait", Argo CD and Flux understand.
//
// The package neither reads nor writes the cluster. Package step uses it for every object, and
// ctrlkittest.CheckConditions checks objects of any operator.
package condition
