// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"slices"
	"strings"
)

// Parts is a set of the optional parts of a control plane. The zero value is the empty set, with
// which only etcd and kube-apiserver run.
type Parts uint8

const (
	// PartControllerManager runs Kubernetes' own controllers, among them the garbage
	// collector and those of Namespaces, ServiceAccounts, Jobs, CronJobs,
	// Deployments, ReplicaSets, StatefulSets, DaemonSets and EndpointSlices.
	PartControllerManager Parts = 1 << iota

	// PartScheduler assigns Pods to Nodes.
	PartScheduler

	// PartNodes provides Nodes whose Pods become ready at once, and complete after a moment if they
	// belong to a Job, without running. It implies the controller manager, which removes the taints
	// of Nodes, and the scheduler.
	PartNodes
)

// AllParts is all parts.
const AllParts = PartControllerManager | PartScheduler | PartNodes

// A namedPart is a part and its name.
type namedPart struct {
	part Parts
	name string
}

var namedParts = []namedPart{
	{PartControllerManager, "controller-manager"},
	{PartScheduler, "scheduler"},
	{PartNodes, "nodes"},
}

// partNames returns the names of the parts.
func partNames() []string {
	var names []string
	for _, p := range namedParts {
		names = append(names, p.name)
	}
	return names
}

// ParseParts returns the set of the parts with these names. It also accepts "all", and "none" for
// the empty set. The set includes the parts that others need.
func ParseParts(names []string) (Parts, error) {
	var parts Parts
	for _, name := range names {
		part, known := partNamed(name)
		if !known {
			return 0, fmt.Errorf("unknown component %q of a control plane: want all, none, or some of %s", name, strings.Join(partNames(), ", "))
		}
		parts |= part
	}
	return parts.withNeeded(), nil
}

func partNamed(name string) (Parts, bool) {
	switch name {
	case "all":
		return AllParts, true
	case "none":
		return 0, true
	}
	i := slices.IndexFunc(namedParts, func(p namedPart) bool { return p.name == name })
	if i < 0 {
		return 0, false
	}
	return namedParts[i].part, true
}

// Has reports whether every part of want is in parts.
func (parts Parts) Has(want Parts) bool {
	return parts&want == want
}

// String lists the names of the parts, separated by commas, or says "none".
func (parts Parts) String() string {
	var names []string
	for _, p := range namedParts {
		if parts.Has(p.part) {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// withNeeded adds the parts that others need.
func (parts Parts) withNeeded() Parts {
	if parts.Has(PartNodes) {
		return AllParts
	}
	return parts
}
