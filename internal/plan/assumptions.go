// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// admissions are the resources that configure what else decides about writes.
var admissions = []schema.GroupVersionResource{
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"},
	{Version: "v1", Resource: "resourcequotas"},
	{Version: "v1", Resource: "limitranges"},
}

// assumptions returns what the copy does not do, as far as the cluster has it.
func (p *planner) assumptions(ctx context.Context, result *Plan) []string {
	var out []string
	for _, resource := range admissions {
		objects, err := p.Source.Read(ctx, resource)
		if err == nil && len(objects) > 0 {
			out = append(out, fmt.Sprintf("%d %s of the cluster are not asked", len(objects), resource.Resource))
		}
	}
	others := map[string]int{}
	for _, c := range slices.Concat(result.AtStart, result.Changes) {
		if c.By == Others {
			others[c.Kind]++
		}
	}
	if len(others) > 0 {
		out = append(out, "what other controllers do is played: Pods become ready, Jobs complete")
	}
	return out
}
