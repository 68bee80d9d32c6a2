// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package health says of any object whether it is ready, and why not:
//
//	h := health.Of(obj) // typed, unstructured, or only metadata
//	if !h.IsReady() {
//		fmt.Printf("%s %s\n", obj.GetName(), h)
//	}
//
// Authors know it as apply.HealthOf.
//
// It follows the rules of kstatus for built-in kinds, and the conventions of status documents for
// all others: Ready, Reconciling and Stalled; Available, Progressing and Degraded; severities of
// Cluster API; observed generations; counters of replicas; a phase in a word.
//
// The health is a function of the object alone. It reads no clock and no cluster, and does not
// depend on the order of conditions. It leaves to others what is not in the object: whether the
// Pods of a Service answer, or how long something has been progressing.
package health
