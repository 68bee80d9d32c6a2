// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

// Path is where an operator serves reports, below the address of its metrics.
const Path = "/debug/ctrlkit/explain"

// Unknown is the beginning of the answer of an operator that knows nothing about an object. It
// distinguishes that answer from the 404 of a server that has no such path.
const Unknown = "nothing is known"

// Headers of the answer that nothing is known.
const (
	// LeaderHeader is "true" if the process that was asked is the leader, "false" if it is not.
	LeaderHeader = "Ctrlkit-Leader"
	// HostHeader is the host name of the process; in a cluster, the name of its Pod.
	HostHeader = "Ctrlkit-Host"
	// NamespaceHeader is the namespace in which the process runs; absent outside a cluster.
	NamespaceHeader = "Ctrlkit-Namespace"
)
