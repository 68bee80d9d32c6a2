// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim runs an operator, the real one with its manager, informers and queues, against an API
// server in memory and in virtual time, and tests that it ends in the same state whatever goes
// wrong: it kills the operator before and after every write, loses answers, refuses writes, delays
// watches, lets other clients interfere, and compares.
//
//	func TestBackupSurvives(t *testing.T) {
//		sim.Run(t, sim.Workload{
//			Scheme: scheme,
//			CRDs:   []string{"../config/crd/bases"},
//			Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
//				return (&BackupReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
//			}),
//			Script: func(w *sim.World) {
//				w.Create(backup)
//				w.Settle()
//				sim.Update(w, backup, func(b *v1.Backup) { b.Spec.Size = 5 })
//				w.Settle()
//				w.Delete(backup)
//				w.Settle()
//			},
//		})
//	}
//
// The test runs the workload once without a fault, lists every place where something can go wrong,
// and runs it again for each of them. A finding is printed with the difference between the worlds,
// with what happened around the fault, and with one line that runs exactly that plan again.
//
// A [FaultKind] names what can go wrong, an [Oracle] what must hold. [NewServer] has the API server in
// memory alone.
//
// The controllers of workloads, the scheduler and the kubelets are played: Deployments are rolled
// out, Jobs complete, Pods become ready. Package [github.com/ctrlkit/ctrlkit/sim/player] has these
// players, and makes them for other kinds. Fakes of external systems live in a [Fake], or are
// declared as an [External].
//
// Nothing of the operator knows of the simulator, and nothing else of ctrlkit is needed. The
// simulator controls only what goes through the configuration that it hands to the operator, the
// external systems of the workload, and package time.
package sim
