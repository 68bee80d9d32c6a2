// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// containers returns the containers of a Deployment, to be changed in place.
func containers(content map[string]any) []any {
	return content["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)
}

func web(content map[string]any) map[string]any { return containers(content)[0].(map[string]any) }

// set returns a change of the fields of the container web.
func set(field string, value any) func(map[string]any) {
	return func(content map[string]any) { web(content)[field] = value }
}

func objects(items ...map[string]any) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list
}

var fieldCases = []soundCase{
	{"a label of ours is changed", configMap, func(c *child) { c.merge("other", "{metadata: {labels: {app: x}}}") }, detected,
		"metadata.labels is no longer ours: last written by other"},
	{"a label of ours is removed", configMap, func(c *child) { c.merge("other", "{metadata: {labels: {app: null}}}") }, detected,
		"metadata.labels is no longer ours"},
	{"a label is added", configMap, func(c *child) { c.merge("other", "{metadata: {labels: {theirs: x}}}") }, unchanged, ""},
	{"data of ours is changed", configMap, func(c *child) { c.merge("other", "{data: {b: x}}") }, detected, "data.b is no longer ours: last written by other"},
	{"data of ours is removed", configMap, func(c *child) { c.merge("other", "{data: {b: null}}") }, detected, "data.b is no longer ours"},
	{"all data is removed", configMap, func(c *child) { c.merge("other", "{data: null}") }, detected, "data is no longer ours"},
	{"data is added", configMap, func(c *child) { c.merge("other", "{data: {theirs: x}}") }, unchanged, ""},
	{"added data is changed", configMap, func(c *child) {
		c.merge("other", "{data: {theirs: x}}")
		c.merge("third", "{data: {theirs: z}}")
	}, unchanged, ""},
	{"a Secret's data is changed", secret, func(c *child) { c.merge("other", "{data: {password: eA==}}") }, detected, "data is no longer ours: last written by other"},
	{"a Secret's data is changed by stringData", secret, func(c *child) { c.merge("other", "{stringData: {password: x}}") }, detected,
		"data is no longer ours: last written by other"},
	{"a Secret's data is added", secret, func(c *child) { c.merge("other", "{data: {user: eA==}}") }, unchanged, ""},
	{"a default is changed", deployment, func(c *child) { c.merge("other", "{spec: {minReadySeconds: 3}}") }, unchanged, ""},
	{"the target port of a Service, a default, is changed", service, func(c *child) {
		c.patch("other", types.JSONPatchType, "[{op: replace, path: /spec/ports/0/targetPort, value: 8080}]")
	}, unchanged, ""},
	{"the selector of a Service, which is atomic, is changed", service, func(c *child) { c.merge("other", "{spec: {selector: {theirs: x}}}") }, detected,
		"spec.selector is no longer ours: last written by other"},
	{"an atomic map of a Pod template is changed", deployment, func(c *child) {
		c.merge("other", "{spec: {template: {spec: {nodeSelector: {theirs: x}}}}}")
	}, detected, "spec.template.spec.nodeSelector is no longer ours: last written by other"},
	{"a quantity in another format", deployment, func(c *child) {
		c.update("other", func(m map[string]any) { _ = unstructured.SetNestedField(web(m), "1", "resources", "limits", "cpu") })
	}, unchanged, ""},
	{"a quantity is changed", deployment, func(c *child) {
		c.update("other", func(m map[string]any) { _ = unstructured.SetNestedField(web(m), "2", "resources", "limits", "cpu") })
	}, detected, `spec.template.spec.containers[name="web"].resources.limits.cpu is no longer ours: last written by other`},
	{"an empty map gets a field", deployment, func(c *child) {
		c.patch("other", types.JSONPatchType, "[{op: add, path: /spec/template/spec/volumes/0/emptyDir/medium, value: Memory}]")
	}, unchanged, ""},
	{"an owner reference of ours is removed", deployment, func(c *child) { c.merge("other", "{metadata: {ownerReferences: null}}") }, detected,
		`metadata.ownerReferences is no longer ours`},
	{"an owner reference of ours is changed", deployment, func(c *child) {
		c.patch("other", types.JSONPatchType, "[{op: replace, path: /metadata/ownerReferences/0/controller, value: false}]")
	}, detected, `metadata.ownerReferences is no longer ours: last written by other`},
	{"an owner reference is added", deployment, func(c *child) {
		c.patch("other", types.JSONPatchType, "[{op: add, path: /metadata/ownerReferences/-, value: {apiVersion: v1, kind: ConfigMap, name: x, uid: theirs}}]")
	}, unchanged, ""},
	{"empty maps of ours get fields", "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {}}, data: {}}", func(c *child) {
		c.merge("other", "{data: {a: x}, metadata: {labels: {a: x}}}")
	}, detected, "data is no longer ours: last written by other"},
}

var listCases = []soundCase{
	{"a field of an item is changed", deployment, func(c *child) { c.update("other", set("image", "web:2")) }, detected, webImage + "other"},
	{"a field of an item is removed", deployment, func(c *child) { c.update("other", set("resources", nil)) }, detected, ""},
	{"an item is removed", deployment, func(c *child) {
		c.update("other", func(m map[string]any) { setContainers(m, containers(m)[0]) })
	}, detected, `spec.template.spec.containers[name="side"] is no longer ours`},
	{"an item is added", deployment, func(c *child) {
		c.update("other", func(m map[string]any) {
			setContainers(m, append(containers(m), map[string]any{"name": "theirs", "image": "x"})...)
		})
	}, unchanged, ""},
	{"items are reordered", deployment, func(c *child) {
		c.update("other", func(m map[string]any) { setContainers(m, containers(m)[1], containers(m)[0]) })
	}, hole, ""},
	{"items are reordered, and one is changed", deployment, func(c *child) {
		c.update("other", func(m map[string]any) {
			setContainers(m, containers(m)[1], containers(m)[0])
			containers(m)[1].(map[string]any)["image"] = "web:2"
		})
	}, detected, webImage + "other"},
	{"an environment variable is changed", deployment, func(c *child) {
		c.update("other", set("env", objects(map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": "x"})))
	}, detected, `spec.template.spec.containers[name="web"].env[name="B"].value is no longer ours: last written by other`},
	{"an environment variable is added", deployment, func(c *child) {
		c.patch("other", types.StrategicMergePatchType, "{spec: {template: {spec: {containers: [{name: web, env: [{name: C, value: '3'}]}]}}}}")
	}, unchanged, ""},
	{"a port with a default in its key is removed", deployment, func(c *child) {
		c.update("other", set("ports", objects(map[string]any{"containerPort": int64(8080), "protocol": "TCP"}, map[string]any{"containerPort": int64(53), "protocol": "UDP"})))
	}, detected, ""},
	{"a port of a Service has another protocol", service, func(c *child) {
		c.patch("other", types.JSONPatchType, "[{op: replace, path: /spec/ports/0/protocol, value: SCTP}]")
	}, refused, "spec.ports[port=80] is no longer ours"},
	{"a port of a Service is removed", service, func(c *child) {
		c.patch("other", types.JSONPatchType, "[{op: remove, path: /spec/ports/0}]")
	}, detected, "spec.ports[port=80] is no longer ours"},
	{"an item of a set is removed", deployment, func(c *child) { c.merge("other", "{metadata: {finalizers: null}}") }, detected, "metadata.finalizers is no longer ours"},
	{"an item of a set is added", deployment, func(c *child) {
		c.merge("other", "{metadata: {finalizers: [example.com/theirs, example.com/one]}}")
	}, unchanged, ""},
	{"an atomic list is changed", deployment, func(c *child) { c.update("other", set("args", []any{"--port", "9090"})) }, detected,
		`spec.template.spec.containers[name="web"].args is no longer ours: last written by other`},
	{"an atomic list is reordered", deployment, func(c *child) { c.update("other", set("args", []any{"8080", "--port"})) }, detected, ""},
	{"an atomic list gets an item", deployment, func(c *child) { c.update("other", set("args", []any{"--port", "8080", "-v"})) }, detected, ""},
	{"an atomic list is removed", deployment, func(c *child) { c.update("other", set("args", nil)) }, detected, ""},
}

func setContainers(content map[string]any, items ...any) {
	content["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"] = items
}

var subresourceCases = []soundCase{
	{"the status is written", deployment, func(c *child) {
		c.patch("other", types.MergePatchType, "{status: {replicas: 2}}", "status")
	}, unchanged, ""},
	{"metadata is written with the status", deployment, func(c *child) {
		c.patch("other", types.MergePatchType, "{metadata: {labels: {tier: x}}, status: {replicas: 2}}", "status")
	}, unchanged, ""},
	{"the status is applied by the same manager", deployment, func(c *child) {
		c.applyAs(ours, true, c.theirs("{status: {replicas: 2}}"), "status")
	}, unchanged, ""},
	{"scaled", deployment, func(c *child) { c.patch("other", types.MergePatchType, "{spec: {replicas: 7}}", "scale") }, detected,
		"spec.replicas is no longer ours: last written by other (scale)"},
	{"scaled to what it is", deployment, func(c *child) { c.patch("other", types.MergePatchType, "{spec: {replicas: 2}}", "scale") }, unchanged, ""},
	{"a custom resource is scaled", thing, func(c *child) { c.patch("other", types.MergePatchType, "{spec: {replicas: 7}}", "scale") }, detected,
		"spec.size is no longer ours: last written by other (scale)"},
	{"the status of a custom resource is written", thing, func(c *child) {
		c.patch("other", types.MergePatchType, "{status: {replicas: 2}}", "status")
	}, unchanged, ""},
}

var thingCases = []soundCase{
	{"a field without a schema is changed", thing, func(c *child) { c.merge("other", "{spec: {free: {top: 2}}}") }, detected,
		"spec.free.top is no longer ours: last written by other"},
	{"a field without a schema is added", thing, func(c *child) { c.merge("other", "{spec: {free: {theirs: {x: 2}}}}") }, unchanged, ""},
	{"the only field of a map without a schema is changed", thing, func(c *child) { c.merge("other", "{spec: {free: {nested: {x: '2'}}}}") }, detected,
		"spec.free.nested is no longer ours: last written by other"},
	{"the only field of a map without a schema is removed", thing, func(c *child) { c.merge("other", "{spec: {free: {nested: {x: null}}}}") }, hole, ""},
	{"a map without a schema gets a field", thing, func(c *child) { c.merge("other", "{spec: {free: {nested: {theirs: '2'}}}}") }, unchanged, ""},
	{"a map without a schema is removed", thing, func(c *child) { c.merge("other", "{spec: {free: {nested: null}}}") }, detected, "spec.free.nested is no longer ours"},
	{"an empty map without a schema is removed", thing, func(c *child) { c.merge("other", "{spec: {free: {empty: null}}}") }, detected, "spec.free.empty is no longer ours"},
	{"a list without a schema is changed", thing, func(c *child) { c.merge("other", "{spec: {free: {deep: {deeper: {y: [1]}}}}}") }, detected, ""},
	{"the only field of an entry of a map is changed", thing, func(c *child) { c.merge("other", "{spec: {groups: {one: {a: x}}}}") }, detected,
		"spec.groups.one is no longer ours: last written by other"},
	{"one of two fields of an entry of a map is removed", thing, func(c *child) { c.merge("other", "{spec: {groups: {two: {b: null}}}}") }, detected,
		"spec.groups.two.b is no longer ours"},
	{"the only field of an entry of a map is removed", thing, func(c *child) { c.merge("other", "{spec: {groups: {one: {a: null}}}}") }, hole, ""},
	{"an atomic map is changed", thing, func(c *child) { c.merge("other", "{spec: {options: {theirs: x}}}") }, detected, "spec.options is no longer ours: last written by other"},
	{"a set gets an item", thing, func(c *child) { c.merge("other", "{spec: {tags: [a, b, theirs]}}") }, unchanged, ""},
	{"a set loses an item", thing, func(c *child) { c.merge("other", "{spec: {tags: [a]}}") }, detected, `spec.tags[="b"] is no longer ours`},
	{"a set is reordered", thing, func(c *child) { c.merge("other", "{spec: {tags: [b, a]}}") }, hole, ""},
	{"an atomic list of a custom resource is changed", thing, func(c *child) { c.merge("other", "{spec: {steps: [test, make]}}") }, detected,
		"spec.steps is no longer ours: last written by other"},
	{"a field of an item of a custom resource is changed", thing, func(c *child) {
		c.merge("other", "{spec: {ports: [{name: http, port: 81}, {name: dns, port: 53}]}}")
	}, detected, `spec.ports[name="http"].port is no longer ours: last written by other`},
	{"a default of an item is changed", thing, func(c *child) {
		c.merge("other", "{spec: {ports: [{name: http, port: 80, protocol: UDP}, {name: dns, port: 53}]}}")
	}, unchanged, ""},
	{"changed in another API version", thing, func(c *child) {
		c.use("witness.ctrlkit.dev/v1beta1")
		c.merge("other", "{spec: {size: 9}}")
		c.use("witness.ctrlkit.dev/v1")
	}, detected, "spec.size is no longer ours: last written by other"},
	{"the only field of an entry of a map is changed in another API version", thing, func(c *child) {
		c.use("witness.ctrlkit.dev/v1beta1")
		c.merge("other", "{spec: {groups: {one: {a: x}}}}")
		c.use("witness.ctrlkit.dev/v1")
	}, hole, ""},
	{"the operator moves to another API version", thing, func(c *child) {
		c.intent["apiVersion"] = "witness.ctrlkit.dev/v1beta1"
		c.use("witness.ctrlkit.dev/v1beta1")
	}, detected, "no apply of ours is recorded"},
}
