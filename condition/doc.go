// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package condition keeps the conditions of an object: who declares them, how they are summarized, and that they hold still.
//
//	set, err := condition.NewSet(obj, []condition.Declaration{
//		{Type: "SecretFound"},
//		{Type: "Degraded", Polarity: condition.PolarityAbnormalTrue, Weight: condition.WeightInformational},
//	}, nil, time.Now())
//	set.Bad("SecretFound", condition.SeverityInfo, "NotFound", `waiting for Secret "db"`)
//	set.Summarize()
//	err = set.Store(obj)
//
// A [Set] is one reconcile's view. Declared conditions are there from the first reconcile on, also on objects that an older version of the
// operator left without them; a declared one that is retired goes. Conditions that others write are left alone. Ready is computed from what is
// declared, the worst first, and with it Reconciling and Stalled, the words of kstatus, which "kubectl wait", Argo CD and Flux understand.
//
// The package neither reads nor writes the cluster. Package step uses it for every object, and conditiontest checks objects of any operator.
package condition
