// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// Parts of intents, from which a random one takes some. The changes are those that another client
// makes of it, as strategic or merge patches.
var parts = map[string][]struct{ intent, change string }{
	"apiVersion: v1\nkind: ConfigMap": {
		{"data: {a: '1'}", "data: {a: x}"},
		{"data: {b: ''}", "data: {b: x}"},
		{"metadata: {labels: {app: web}}", "metadata: {labels: {app: x}}"},
		{"metadata: {annotations: {note: '<&>'}}", "metadata: {annotations: {note: null}}"},
		{"metadata: {finalizers: [example.com/a, example.com/b]}", "metadata: {finalizers: null}"},
		{"binaryData: {c: eA==}", "binaryData: {c: eQ==}"},
		{"immutable: false", "immutable: null"},
	},
	"apiVersion: v1\nkind: Service\nspec: {ports: [{port: 80}]}": {
		{"spec: {selector: {app: web}}", "spec: {selector: {app: x}}"},
		{"spec: {sessionAffinity: ClientIP}", "spec: {sessionAffinity: None}"},
		{"spec: {type: NodePort}", "spec: {type: ClusterIP}"},
		{"spec: {ports: [{port: 80, targetPort: web}]}", "spec: {ports: [{port: 80, targetPort: 81}]}"},
		{"spec: {publishNotReadyAddresses: true}", "spec: {publishNotReadyAddresses: false}"},
		{"metadata: {labels: {app: web}}", "metadata: {labels: {app: null}}"},
	},
	"apiVersion: apps/v1\nkind: Deployment\nspec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: web, image: x}]}}}": {
		{"spec: {replicas: 0}", "spec: {replicas: 1}"},
		{"spec: {paused: true}", "spec: {paused: false}"},
		{"spec: {minReadySeconds: 3}", "spec: {minReadySeconds: 4}"},
		{"spec: {strategy: {rollingUpdate: {maxSurge: 25%}}}", "spec: {strategy: {rollingUpdate: {maxSurge: 2}}}"},
		{"spec: {template: {spec: {containers: [{name: web, args: [a]}]}}}", "spec: {template: {spec: {containers: [{name: web, args: [b]}]}}}"},
		{"spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 80, name: web}]}]}}}",
			"spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 80, name: x}]}]}}}"},
		{"spec: {template: {spec: {containers: [{name: web, resources: {limits: {cpu: 1000m}}}]}}}",
			"spec: {template: {spec: {containers: [{name: web, resources: {limits: {cpu: 2000m}}}]}}}"},
		{"spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: ''}, {name: B}]}]}}}",
			"spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: x}]}]}}}"},
		{"spec: {template: {spec: {nodeSelector: {}}}}", "spec: {template: {spec: {nodeSelector: {a: b}}}}"},
	},
}

// combine adds the fields of an intent to another. Items of lists are named by their first field.
func combine(into, from map[string]any) {
	for key, value := range from {
		switch have := into[key].(type) {
		case map[string]any:
			if fields, ok := value.(map[string]any); ok {
				combine(have, fields)
				continue
			}
		case []any:
			item, ok := value.([]any)[0].(map[string]any)
			if first, isMap := have[0].(map[string]any); ok && isMap {
				combine(first, item)
				continue
			}
		}
		into[key] = value
	}
}

// A random intent that was applied is covered. After another client has changed fields that are not
// in it, it still is; after a change of a field that is in it, it is not, until it is applied again.
func TestRandomIntents(t *testing.T) {
	s := memoryServer(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		base := rapid.SampledFrom(slices.Sorted(maps.Keys(parts))).Draw(rt, "kind")
		var in, out []int
		for i := range parts[base] {
			if rapid.Bool().Draw(rt, fmt.Sprint("part ", i)) {
				in = append(in, i)
			} else {
				out = append(out, i)
			}
		}
		n++
		c := s.child(t, fmt.Sprintf("random-%d", n), base)
		for _, i := range in {
			combine(c.intent, runtime.DeepCopyJSON(parse(t, parts[base][i].intent)))
		}
		live := c.apply()
		if !c.unchanged(live) {
			rt.Fatalf("just applied: %s\n%s", c.unchangedWhy(live), managedFields(live))
		}
		if len(out) > 0 {
			i := rapid.SampledFrom(out).Draw(rt, "change of another field")
			change(c, parts[base][i].change)
			if live := c.get(); !c.unchanged(live) {
				rt.Fatalf("after %s: %s\n%s", parts[base][i].change, c.unchangedWhy(live), managedFields(live))
			}
		}
		if len(in) > 0 {
			i := rapid.SampledFrom(in).Draw(rt, "change of a field of ours")
			change(c, parts[base][i].change)
			live := c.get()
			if c.unchanged(live) {
				rt.Fatalf("after %s: unchanged\n%s", parts[base][i].change, managedFields(live))
			}
			if live := c.apply(); !c.unchanged(live) {
				rt.Fatalf("after the repair: %s\n%s", c.unchangedWhy(live), managedFields(live))
			}
		}
	})
}

func change(c *child, text string) {
	c.t.Helper()
	data, err := json.Marshal(parse(c.t, text))
	c.must(err)
	c.patch("other", types.StrategicMergePatchType, string(data))
}
