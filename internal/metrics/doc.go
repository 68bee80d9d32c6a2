// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics keeps Prometheus series from a journal: how reconciles end and what caused them,
// how long steps and actions take, what fails, what is written.
//
//	observer, err := metrics.New(ctrlmetrics.Registry, metrics.Options{})
//	if err != nil {
//		return err
//	}
//	engine, err := step.New(step.Options[*v1.Database]{
//		...,
//		Observers: []journal.Observer{observer},
//	}, ...)
//
// Here ctrlmetrics is sigs.k8s.io/controller-runtime/pkg/metrics, whose registry the manager
// serves. The series:
//
//	ctrlkit_reconciles_total{controller,result}
//	ctrlkit_reconcile_causes_total{controller,cause}
//	ctrlkit_step_duration_seconds{controller,step,phase}
//	ctrlkit_steps_total{controller,step,phase,outcome}
//	ctrlkit_action_duration_seconds{controller,step,action}
//	ctrlkit_actions_total{controller,step,action,outcome}
//	ctrlkit_failures_total{controller,class}
//	ctrlkit_writes_total{controller,kind,verb,subresource,outcome}
//	ctrlkit_hot_loops_total{controller}
//	ctrlkit_stalled_objects{controller}
//	ctrlkit_stalled_oldest_timestamp_seconds{controller}
//	ctrlkit_object_result{controller,namespace,name,result}
//	ctrlkit_object_failures{controller,namespace,name}
//
// What they mean:
//
//   - The values of result are those of journal.Result, of cause those of journal.CauseKind, of
//     class those of package failure.
//   - The outcome is done, failed, stalled, waiting or requeue; that of a write is done or failed.
//   - The durations are histograms.
//   - The two of stalled objects are gauges of the objects with the condition Stalled, also because
//     of a failure: how many, and since when the oldest. They are known again when each object has been
//     reconciled after a start.
//   - The last two exist only with [PerObjectEach]: ctrlkit_object_result is 1 for the result of
//     the last reconcile, ctrlkit_object_failures is the number of failures in a row.
//
// A wait is a result and an outcome of its own, not a failure. A reconcile that was interrupted
// because the operator stops is a failure of class Canceled, and one that lost a race for an
// object is a failure of class Conflict: exclude both from alerts.
//
// The series of controller-runtime, for the queue and for the duration of whole reconciles, are
// not repeated here.
package metrics
