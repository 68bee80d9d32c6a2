// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"maps"
	"slices"
	"strings"
)

// conditions say when rules hold that depend on other fields. A rule is learned from valid objects
// of which one field is changed, and holds for these objects only: that of a local seccomp profile
// for a profile of the type Localhost. The keys are the ends of paths. Where a condition does not
// hold, the field is not checked.
var conditions = map[string]func(at *step) bool{
	"seccompProfile.localhostProfile": func(at *step) bool { return at.in["type"] == "Localhost" },
	"matchExpressions[].values":       func(at *step) bool { return at.in["operator"] == "In" || at.in["operator"] == "NotIn" },
	"dnsConfig.nameservers":           func(at *step) bool { return at.parent != nil && at.parent.in["dnsPolicy"] == "None" },
	"rollingUpdate.maxUnavailable":    func(at *step) bool { return isZero(at.in["maxSurge"]) },
	"target.averageUtilization":       func(at *step) bool { return at.in["type"] == "Utilization" },
	"paths[].path":                    func(at *step) bool { return at.in["pathType"] != "ImplementationSpecific" },
	"subsets[].ports[].name":          func(at *step) bool { return len(at.siblings()) > 1 },
	"rules[].succeededCount":          func(*step) bool { return false }, // it depends on the number of indexes
	"securityContext.privileged":      func(*step) bool { return false }, // it depends on a flag of the server
}

// conditionOf returns the condition of a rule, or nil if it always holds.
func conditionOf(r *rule) func(at *step) bool {
	for end, holds := range conditions {
		if strings.HasSuffix("."+r.Path, "."+end) {
			return holds
		}
	}
	return nil
}

// isFixed reports whether a field cannot change in the new state of its object. The class of a
// Service can if the new type has none.
func isFixed(at *step) bool {
	return at.name != "loadBalancerClass" || at.in["type"] == "LoadBalancer"
}

// siblings returns the list that has the object of a field as an element.
func (s *step) siblings() []any {
	if s.parent == nil || s.parent.name != "" || s.parent.parent == nil {
		return nil
	}
	list, _ := s.parent.parent.in[s.parent.parent.name].([]any)
	return list
}

// isZero reports whether a number or percentage is not set, or is none.
func isZero(value any) bool {
	return slices.Contains([]any{nil, int64(0), "0%"}, value)
}

// ungated returns the old state of a Pod with the scheduling gates of the new one, which are checked
// by themselves, and with its scheduling directives if the old one has gates: these may change.
func ungated(obj, old object) object {
	spec, before := child(obj, "spec"), child(old, "spec")
	if spec == nil || before == nil {
		return old
	}
	names := []string{"schedulingGates"}
	if was, _ := before["schedulingGates"].([]any); len(was) > 0 {
		names = append(names, "nodeSelector", "affinity")
	}
	old = maps.Clone(old)
	before = maps.Clone(before)
	old["spec"] = before
	for _, name := range names {
		keep(before, spec, name)
	}
	return old
}
