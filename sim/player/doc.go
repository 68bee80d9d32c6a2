// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package player plays the controllers that do not run in a simulation: those of workloads, the
// scheduler and the kubelets, and what else acts on the objects of an operator.
//
// A [Player] is for one kind, and works like a reconciler: it is called after each change of an
// object of its kind or of one of the object's children, finds out what there is, and does the next
// step.
//
//	var databases = player.New(func(s *player.Stage, db *v1.Database) error {
//		if len(player.Children[*corev1.Pod](s, db)) == 0 {
//			return s.CreateFor(db, podOf(db))
//		}
//		db.Status.Phase = "Running"
//		return s.UpdateStatus(db)
//	})
//
//	sim.Workload{Players: player.Defaults().With(databases)}
//
// A workload without Players has those of [Defaults]. With replaces those of the same kinds,
// [Set.Without] leaves kinds out, and [None] is for workloads whose scripts write every status.
//
// Players are no part of what is tested: no fault strikes their writes, no oracle judges them, and
// their objects are neither the user's nor the operator's.
package player
