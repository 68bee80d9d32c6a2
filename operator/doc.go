// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package operator makes a program of controllers: all that a main needs.
//
//	var databases = operator.Operator{
//		Name:     "databases.example.com", // of leader election
//		Types:    []func(*runtime.Scheme) error{v1.AddToScheme},
//		Controls: []func(ctrl.Manager) error{control},
//	}
//
//	func main() { databases.Main() }
//
//	func control(mgr ctrl.Manager) error {
//		return step.Control(mgr, step.Options[*v1.Database]{Name: "database"}, createDatabase)
//	}
//
// The program has the usual flags, a log, leader election, health checks, metrics, what "ctrlkit
// explain" reads, and a page that "ctrlkit view" opens. A test makes the same manager, with where
// it finds the API server:
//
//	mgr, err := databases.Manager(config, ctrl.Options{})
//
// A program with a main of its own takes the parts: [BindFlags], [NewManager] or [NewShardManager],
// and [Observe]. Traces need a provider of your choice: see package operator/tracing.
//
// # Explanations
//
// "ctrlkit explain" says why an object is in its state: which step has failed or waits, for what
// and since when, what caused the last reconciles and what they wrote, who owns which finalizer,
// and what a person can do about it. The operator keeps a [journal.Ring] for it, in bounded memory,
// and serves it beside its metrics, with the same protection. Without access to the operator the
// command explains what the conditions, finalizers and annotations of the object say.
//
// # Series
//
// An observed manager has these series, in the registry of controller-runtime:
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
//
// Their meaning:
//
//   - The values of result are those of journal.Result, of cause those of journal.CauseKind, of
//     class those of package failure.
//   - The outcome is done, failed, stalled, waiting or requeue; that of a write is done or failed.
//   - The durations are histograms.
//   - The two of stalled objects are gauges of the objects with the condition Stalled, also because
//     of a failure: how many, and since when the oldest. They are known again when each object has
//     been reconciled after a start.
//
// A wait is a result and an outcome of its own, not a failure. A reconcile that was interrupted
// because the operator stops is a failure of class Canceled, and one that lost a race for an object
// is a failure of class Conflict: exclude both from alerts. Their number depends on the code of the
// operator, not on the cluster. [WithObjects] and [WithObjectSeries] add others.
//
// The series of controller-runtime, for the queue and for the duration of whole reconciles, are
// not repeated here.
package operator
