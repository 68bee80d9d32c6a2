// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// limits are the resources that limit what is written, beside webhooks and admission policies.
var limits = []schema.GroupVersionResource{
	{Version: "v1", Resource: "resourcequotas"},
	{Version: "v1", Resource: "limitranges"},
}

// assumptions returns what the copy does not do, as far as the cluster has it.
func (p *planner) assumptions(ctx context.Context, result *Plan) []string {
	var out []string
	for _, resource := range limits {
		objects, err := p.Source.Read(ctx, resource)
		switch {
		case err != nil:
			out = append(out, "whether the cluster has "+resource.Resource+" could not be read: they are not asked")
		case len(objects) > 0:
			out = append(out, fmt.Sprintf("%d %s of the cluster are not asked", len(objects), resource.Resource))
		}
	}
	if n := p.conversions(ctx); n > 0 {
		out = append(out, fmt.Sprintf("%d conversion webhooks of the cluster are not called: objects have the fields of the version in which they are read first", n))
	}
	if slices.ContainsFunc(slices.Concat(result.AtStart, result.Changes), func(c Change) bool { return c.By == Others }) {
		out = append(out, "what other controllers do is played: Pods become ready, Jobs complete")
	}
	return out
}

// conversions returns how many definitions have a conversion webhook.
func (p *planner) conversions(ctx context.Context) int {
	objects, err := p.Source.Read(ctx, definitions)
	if err != nil {
		return 0 // it is named as unknown
	}
	n := 0
	for _, content := range objects {
		if strategy, _, _ := unstructured.NestedString(content, "spec", "conversion", "strategy"); strategy == "Webhook" { //nolint:errcheck // "" is none
			n++
		}
	}
	return n
}
