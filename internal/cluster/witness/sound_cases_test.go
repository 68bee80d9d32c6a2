// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package witness_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  labels: {app: web, tier: front}
  finalizers: [example.com/one]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: {owner}, controller: true}]
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
    spec:
      nodeSelector: {disk: ssd}
      containers:
      - name: web
        image: web:1
        args: [--port, "8080"]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports: [{containerPort: 8080}, {containerPort: 53}, {containerPort: 53, protocol: UDP}]
        resources: {limits: {cpu: 1000m, memory: 1Gi}}
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      - name: side
        image: side:1
      volumes: [{name: scratch, emptyDir: {}}]
`

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {labels: {app: web}}
data: {a: "1", b: "2"}
`

const service = `
apiVersion: v1
kind: Service
metadata: {labels: {app: web}}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]
`

const secret = `
apiVersion: v1
kind: Secret
data: {password: aHVudGVyMg==}
`

const thing = `
apiVersion: witness.ctrlkit.dev/v1
kind: Thing
spec:
  size: 3
  free: {top: 1, nested: {x: "1"}, empty: {}, deep: {deeper: {y: [1, 2]}}}
  groups: {one: {a: "1"}, two: {a: "1", b: "2"}}
  options: {color: red}
  tags: [a, b]
  steps: [make, test]
  ports: [{name: http, port: 80}, {name: dns, port: 53}]
`

func soundCases() []soundCase {
	return slices.Concat(managerCases, fieldCases, listCases, subresourceCases, thingCases)
}

// image returns an apply configuration of the container web.
func image(image string) string {
	return "{spec: {template: {spec: {containers: [{name: web, image: '" + image + "'}]}}}}"
}

const webImage = `spec.template.spec.containers[name="web"].image is no longer ours: last written by `

var managerCases = []soundCase{
	{"nothing happens to a Deployment", deployment, func(*child) {}, unchanged, ""},
	{"nothing happens to a ConfigMap", configMap, func(*child) {}, unchanged, ""},
	{"nothing happens to a Service with a default target port", service, func(*child) {}, unchanged, ""},
	{"nothing happens to a Secret", secret, func(*child) {}, unchanged, ""},
	{"nothing happens to a custom resource", thing, func(*child) {}, unchanged, ""},
	{"a forced apply of another value", deployment, func(c *child) { c.applyAs("other", true, c.theirs(image("web:2"))) }, detected, webImage + "other"},
	{"a forced apply of the same value", deployment, func(c *child) { c.applyAs("other", true, c.theirs(image("web:1"))) }, unchanged, ""},
	{"an apply of the same value", deployment, func(c *child) { c.applyAs("other", false, c.theirs(image("web:1"))) }, unchanged, ""},
	{"an apply of another value after one of the same", deployment, func(c *child) {
		c.applyAs("other", false, c.theirs(image("web:1")))
		c.applyAs("other", true, c.theirs(image("web:2")))
	}, detected, webImage + "other"},
	{"an apply of another value that is refused", deployment, func(c *child) {
		if _, err := c.tryApply("other", false, c.theirs(image("web:2"))); err == nil {
			c.t.Error("the apply is not refused")
		}
	}, unchanged, ""},
	{"an apply that co-owns a field and leaves it", deployment, func(c *child) {
		c.applyAs("other", true, c.theirs(image("web:1")))
		c.applyAs("other", true, c.theirs("{metadata: {labels: {theirs: '1'}}}"))
	}, unchanged, ""},
	{"another value and back, by an apply", deployment, func(c *child) {
		c.applyAs("other", true, c.theirs(image("web:2")))
		c.applyAs("other", true, c.theirs(image("web:1")))
	}, detected, webImage + "other"},
	{"an update", deployment, func(c *child) { c.update("other", replicas(5)) }, detected, "spec.replicas is no longer ours: last written by other"},
	{"an update that writes the same value", deployment, func(c *child) { c.update("other", replicas(2)) }, unchanged, ""},
	{"another value and back, by updates", deployment, func(c *child) {
		c.update("other", replicas(5))
		c.update("other", replicas(2))
	}, detected, "spec.replicas is no longer ours: last written by other"},
	{"an update by the same manager", deployment, func(c *child) { c.update(ours, replicas(5)) }, detected, "spec.replicas is no longer ours: last written by ctrlkit"},
	{"a merge patch by the same manager", deployment, func(c *child) { c.merge(ours, "{spec: {replicas: 5}}") }, detected, ""},
	{"an apply by the same manager without the annotation", deployment, func(c *child) {
		other := c.theirs("{}")
		for key, value := range c.intent {
			other[key] = value
		}
		c.applyAs(ours, true, other)
	}, detected, ""},
	{"an apply by the same manager of less, with the annotation", deployment, func(c *child) {
		content := runtime.DeepCopyJSON(withHash(c.intent))
		unstructured.RemoveNestedField(content, "spec", "replicas")
		content["spec"].(map[string]any)["paused"] = true
		c.applyAs(ours, true, content)
	}, detected, "spec.replicas is no longer ours"},
	{"an apply by the same manager of other values, with the annotation", configMap, func(c *child) {
		content := withHash(c.intent)
		content["data"] = map[string]any{"a": "other", "b": "2"}
		c.applyAs(ours, true, content)
	}, hole, ""},
	{"an apply by the same manager of more, with the annotation", configMap, func(c *child) {
		content := withHash(c.intent)
		content["data"] = map[string]any{"a": "1", "b": "2", "c": "3"}
		c.applyAs(ours, true, content)
	}, hole, ""},
	{"an update of an object from a cache with the transform", deployment, func(c *child) {
		c.merge("third", "{metadata: {labels: {third: x}}}")
		c.updateCached("other", func(content map[string]any) {
			_ = unstructured.SetNestedField(content, "x", "metadata", "labels", "theirs")
		})
		if entries := c.get().GetManagedFields(); !slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "third" }) {
			c.t.Errorf("the update has removed the entry of another manager: %v", entries)
		}
	}, unchanged, ""},
	{"a JSON patch", deployment, func(c *child) {
		c.patch("other", types.JSONPatchType, "[{op: replace, path: /spec/template/spec/containers/0/image, value: 'web:2'}]")
	}, detected, webImage + "other"},
	{"a strategic merge patch", deployment, func(c *child) { c.patch("other", types.StrategicMergePatchType, image("web:2")) }, detected, webImage + "other"},
	{"managed fields are reset", deployment, func(c *child) { c.merge("other", "{metadata: {managedFields: [{}]}}") }, detected, "no apply of ours is recorded"},
	{"deleted, and created by another client with the same content", configMap, func(c *child) {
		c.remove()
		_, err := c.api.Create(c.t.Context(), &unstructured.Unstructured{Object: withHash(c.intent)}, metav1.CreateOptions{FieldManager: "other"})
		c.must(err)
	}, detected, "no apply of ours is recorded"},
	{"the hash is changed", configMap, func(c *child) { c.merge("other", "{metadata: {annotations: {"+witness.Annotation+": x}}}") }, detected, ""},
	{"the hash is removed", configMap, func(c *child) { c.merge("other", "{metadata: {annotations: {"+witness.Annotation+": null}}}") }, detected, ""},
	{"the hash is changed and put back", configMap, func(c *child) {
		c.merge("other", "{metadata: {annotations: {"+witness.Annotation+": x}}}")
		c.merge("other", "{metadata: {annotations: {"+witness.Annotation+": "+witness.Hash(c.intent)+"}}}")
	}, hole, ""},
}

func replicas(n int64) func(map[string]any) {
	return func(content map[string]any) { _ = unstructured.SetNestedField(content, n, "spec", "replicas") }
}

// realCases are those in which the server in memory differs: it drops an empty list of managed
// fields, and does not check that a volume has one source.
var realCases = []soundCase{
	{"managed fields are set to an empty list", deployment, func(c *child) { c.merge("other", "{metadata: {managedFields: []}}") }, detected, "no apply of ours is recorded"},
	{"the source of a volume, an empty map, is replaced", deployment, func(c *child) {
		c.patch("other", types.JSONPatchType, "[{op: remove, path: /spec/template/spec/volumes/0/emptyDir}, {op: add, path: /spec/template/spec/volumes/0/hostPath, value: {path: /x}}]")
	}, refused, `spec.template.spec.volumes[name="scratch"].emptyDir is no longer ours`},
}
