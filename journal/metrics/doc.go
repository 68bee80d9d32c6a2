// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics keeps Prometheus series from a journal: how reconciles end and what caused them, how
// long steps and actions take, what fails, what is written.
//
//	observer, err := metrics.New(ctrlmetrics.Registry, metrics.Options{})
//	if err != nil {
//		return err
//	}
//	engine, err := step.New(step.Options[*v1.Database]{..., Observers: []journal.Observer{observer}}, ...)
//
// Here ctrlmetrics is sigs.k8s.io/controller-runtime/pkg/metrics, whose registry the manager serves. The series:
//
//	ctrlkit_reconciles_total{controller,result}                         result: as journal.Result has it
//	ctrlkit_reconcile_causes_total{controller,cause}                    cause: as journal.CauseKind has it
//	ctrlkit_step_duration_seconds{controller,step,phase}                a histogram
//	ctrlkit_steps_total{controller,step,phase,outcome}                  outcome: done, failed, waiting or requeue
//	ctrlkit_action_duration_seconds{controller,step,action}             a histogram
//	ctrlkit_actions_total{controller,step,action,outcome}               outcome: as for steps
//	ctrlkit_failures_total{controller,class}                            class: as package failure has it
//	ctrlkit_writes_total{controller,kind,verb,subresource,outcome}      outcome: done or failed
//	ctrlkit_hot_loops_total{controller}
//	ctrlkit_object_result{controller,namespace,name,result}             with PerObjectEach; 1 for the present result
//	ctrlkit_object_failures{controller,namespace,name}                  with PerObjectEach; failures in a row
//
// A wait is a result and an outcome of its own, not a failure. A reconcile that was interrupted because
// the operator stops is a failure of class Canceled, and one that lost a race for an object is a failure
// of class Conflict: exclude both from alerts.
//
// The series of controller-runtime, for the queue and for the duration of whole reconciles, are not
// repeated here.
package metrics
