// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package permission has what an operator needs to be allowed to do, with who needs it: as its
// engines and steps declare it, or as its requests show it. It writes rules of RBAC from that.
//
//	needs, err := engine.Needs() // of package step: what its declarations need
//	needs := sim.Needs(t, workload) // what the operator asks for in a simulation
//
//	for _, n := range needs {
//		fmt.Println(n, n.By)
//	}
//	fmt.Print(permission.Markers(permission.Rules(needs)))
//
// Package internal/cluster/rbac compares needs with the roles of manifests, in both
// directions. Authors have its names from package step.
package permission
