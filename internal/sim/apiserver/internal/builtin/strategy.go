// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// preparation is what the kind's strategy and admission plugins do upstream, beyond defaults,
// status and generation.
type preparation struct {
	create func(obj object, allocate func(kind string) string)
	update func(obj, old object)
}

var preparations = map[string]preparation{
	"/Namespace": {create: func(o object, _ func(string) string) {
		if child(o, "spec") == nil {
			o["spec"] = object{}
		}
		child(o, "spec")["finalizers"] = []any{"kubernetes"}
		o["status"] = object{"phase": "Active"}
	}, update: func(o, old object) { keep(o, old, "spec") }},
	"/Pod":                   {create: newPod, update: changedPod},
	"/Service":               {create: newService, update: changedService},
	"/PersistentVolumeClaim": {create: func(o object, _ func(string) string) { o["status"] = object{"phase": "Pending"} }},
	"/PersistentVolume":      {create: func(o object, _ func(string) string) { o["status"] = object{"phase": "Pending"} }},
	signingRequest:           {update: func(o, old object) { keep(o, old, "spec") }},
	"batch/Job":              {create: newJob, update: changedJob},
	"apps/DaemonSet":         {create: func(o object, _ func(string) string) { countTemplates(o, 1) }, update: changedTemplate},
}

// Terminate sets the phase of a namespace that is being deleted.
func Terminate(obj map[string]any) { obj["status"] = object{"phase": "Terminating"} }

func stringData(o object) {
	plain, _ := o["stringData"].(object)
	if len(plain) > 0 {
		data, ok := o["data"].(object)
		if !ok {
			data = object{}
			o["data"] = data
		}
		for k, v := range plain {
			text, _ := v.(string)
			data[k] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	delete(o, "stringData")
}

func newPod(o object, _ func(string) string) {
	spec := child(o, "spec")
	if spec == nil {
		return
	}
	set(spec, "preemptionPolicy", "PreemptLowerPriority")
	set(spec, "priority", int64(0))
	tolerate(spec)
	status := object{"phase": "Pending", "qosClass": qosClass(spec)}
	if gates, _ := spec["schedulingGates"].([]any); len(gates) > 0 {
		status["conditions"] = []any{object{
			"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
			"lastProbeTime": nil, "lastTransitionTime": metadataOf(o)["creationTimestamp"],
		}}
	}
	o["status"] = status
}

// changedPod does what admission plugins do with a changed Pod.
func changedPod(o, old object) {
	spec, before := child(o, "spec"), child(old, "spec")
	if spec == nil || before == nil {
		return
	}
	for _, name := range []string{"priority", "preemptionPolicy"} {
		if spec[name] == nil && before[name] != nil {
			spec[name] = before[name]
		}
	}
	tolerate(spec)
}

// tolerate lets a Pod stay for a while on a Node that is not ready.
func tolerate(spec object) {
	tolerations, _ := spec["tolerations"].([]any)
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		tolerated := slices.ContainsFunc(tolerations, func(t any) bool {
			m, _ := t.(object)
			return m["key"] == key || m["key"] == nil && m["operator"] == "Exists"
		})
		if !tolerated {
			tolerations = append(tolerations, object{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)})
		}
	}
	spec["tolerations"] = tolerations
}

// qosClass returns the quality-of-service class of a Pod, from the requests and limits of its
// containers.
func qosClass(spec object) string {
	any, guaranteed := false, true
	for _, list := range []string{"containers", "initContainers"} {
		each(spec, list, func(c object) {
			limits, requests := child(c, "resources", "limits"), child(c, "resources", "requests")
			for _, name := range []string{"cpu", "memory"} {
				limit, request := quantity(limits[name]), quantity(requests[name])
				if limit != "" || request != "" {
					any = true
				}
				if limit == "" || limit != request {
					guaranteed = false
				}
			}
		})
	}
	switch {
	case !any:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

// quantity returns a quantity in its canonical form, or nothing if it is zero or not set.
func quantity(v any) string {
	text, _ := v.(string)
	if text == "" {
		return ""
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.IsZero() {
		return ""
	}
	return q.String()
}

func newService(o object, allocate func(string) string) {
	spec := child(o, "spec")
	if spec == nil || spec["type"] == "ExternalName" {
		return
	}
	ip, _ := spec["clusterIP"].(string)
	if ip == "" {
		ip = allocate("clusterIP")
		spec["clusterIP"] = ip
	}
	if list, _ := spec["clusterIPs"].([]any); len(list) == 0 {
		spec["clusterIPs"] = []any{ip}
	}
	if list, _ := spec["ipFamilies"].([]any); len(list) == 0 {
		spec["ipFamilies"] = []any{"IPv4"}
	}
	set(spec, "ipFamilyPolicy", "SingleStack")
	nodePorts(spec, allocate)
	HealthCheckPort(spec, allocate)
}

// HealthCheckPort gives a Service the port for health checks that it needs for load balancing
// without a second hop.
func HealthCheckPort(spec map[string]any, allocate func(kind string) string) {
	if port, _ := spec["healthCheckNodePort"].(int64); port != 0 || !needsHealthCheck(spec) {
		return
	}
	var port int64
	if _, err := fmt.Sscan(allocate("nodePort"), &port); err == nil {
		spec["healthCheckNodePort"] = port
	}
}

// Readable returns an object as the answers to requests have it, and whether that is not all that is
// stored. A Service that has become an ExternalName keeps its internalTrafficPolicy in storage, so
// that it does not change, nor its manager, when the type is another one again.
func Readable(gvk schema.GroupVersionKind, content map[string]any) (readable map[string]any, hides bool) {
	spec := child(content, "spec")
	if gvk.Group != "" || gvk.Kind != "Service" || spec["type"] != "ExternalName" || spec["internalTrafficPolicy"] == nil {
		return content, false
	}
	readable, spec = maps.Clone(content), maps.Clone(spec)
	delete(spec, "internalTrafficPolicy")
	readable["spec"] = spec
	return readable, true
}

// dropOfFormerType removes what only the former type of a Service needs, where the client has not
// changed it.
func dropOfFormerType(spec, before object) {
	drop := func(names ...string) {
		for _, name := range names {
			if reflect.DeepEqual(spec[name], before[name]) {
				delete(spec, name)
			}
		}
	}
	if spec["type"] == "ExternalName" && before["type"] != "ExternalName" {
		drop("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
	}
	if before["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
		drop("allocateLoadBalancerNodePorts", "loadBalancerClass")
	}
	if isReachedFromOutside(before) && !isReachedFromOutside(spec) {
		drop("externalTrafficPolicy")
	}
	if mayHaveNodePorts(before) && !mayHaveNodePorts(spec) && isSubset(usedNodePorts(spec), usedNodePorts(before)) {
		each(spec, "ports", func(p object) { delete(p, "nodePort") })
	}
	if !needsHealthCheck(spec) && spec["healthCheckNodePort"] == before["healthCheckNodePort"] {
		delete(spec, "healthCheckNodePort")
	}
}

func isSubset(ports, of map[int64]bool) bool {
	for port := range ports {
		if !of[port] {
			return false
		}
	}
	return true
}

// isReachedFromOutside reports whether a Service has an external traffic policy.
func isReachedFromOutside(spec object) bool {
	addresses, _ := spec["externalIPs"].([]any)
	return spec["type"] == "NodePort" || spec["type"] == "LoadBalancer" || spec["type"] == "ClusterIP" && len(addresses) > 0
}

func mayHaveNodePorts(spec object) bool {
	return spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

func needsNodePorts(spec object) bool {
	return spec["type"] == "NodePort" || spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false
}

func usedNodePorts(spec object) map[int64]bool {
	used := map[int64]bool{}
	each(spec, "ports", func(p object) {
		if port, _ := p["nodePort"].(int64); port != 0 {
			used[port] = true
		}
	})
	return used
}

func needsHealthCheck(spec object) bool {
	return spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

func nodePorts(spec object, allocate func(string) string) {
	if !needsNodePorts(spec) {
		return
	}
	each(spec, "ports", func(p object) {
		if v, _ := p["nodePort"].(int64); v == 0 {
			var port int64
			if _, err := fmt.Sscan(allocate("nodePort"), &port); err == nil {
				p["nodePort"] = port
			}
		}
	})
}

func changedService(o, old object) {
	spec, before := child(o, "spec"), child(old, "spec")
	if spec == nil || before == nil {
		return
	}
	keepAllocated(spec, before)
	if ip, _ := spec["clusterIP"].(string); ip != "" && ip != before["clusterIP"] && equal(spec["clusterIPs"], before["clusterIPs"]) {
		spec["clusterIPs"] = []any{ip} // the client knows the older field only
	}
	dropOfFormerType(spec, before)
}

// keepAllocated restores what the server has given a Service, where the client does not send it.
func keepAllocated(spec, before object) {
	if spec["type"] == "ExternalName" || before["type"] == "ExternalName" {
		return
	}
	for _, name := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
		if v, ok := spec[name]; (!ok || v == "" || v == int64(0)) && before[name] != nil {
			spec[name] = before[name]
		}
	}
	if needsNodePorts(before) && needsNodePorts(spec) {
		keepNodePorts(spec, before)
	}
}

// keepNodePorts gives the ports of a Service the numbers that those of the same names had.
func keepNodePorts(spec, before object) {
	numbers, used := map[any]int64{}, usedNodePorts(spec)
	each(before, "ports", func(p object) {
		if number, _ := p["nodePort"].(int64); number != 0 && !used[number] {
			numbers[portName(p)] = number
		}
	})
	each(spec, "ports", func(p object) {
		if number := numbers[portName(p)]; number != 0 && (p["nodePort"] == nil || p["nodePort"] == int64(0)) {
			p["nodePort"] = number
		}
	})
}

func portName(p object) string {
	name, _ := p["name"].(string)
	return name
}

// templateGeneration is the annotation that counts the templates of a DaemonSet. The real server
// writes it for old clients.
const templateGeneration = "deprecated.daemonset.template.generation"

func countTemplates(o object, generation int64) {
	annotations, ok := metadataOf(o)["annotations"].(object)
	if !ok {
		annotations = object{}
		metadataOf(o)["annotations"] = annotations
	}
	annotations[templateGeneration] = strconv.FormatInt(generation, 10)
}

func changedTemplate(o, old object) {
	text, _ := child(old, "metadata", "annotations")[templateGeneration].(string)
	generation, _ := strconv.ParseInt(text, 10, 64) //nolint:errcheck // 0 stands for none
	if !equal(child(o, "spec")["template"], child(old, "spec")["template"]) {
		generation++
	}
	countTemplates(o, generation)
}

func newJob(o object, _ func(string) string) {
	generateSelector(o)
	labelJob(o) // as when the real server reads it back
	partLabels(o)
}

// partLabels gives the Job and its template labels of their own: the defaults make them one map.
func partLabels(o object) {
	if labels := child(o, "metadata", "labels"); labels != nil {
		metadataOf(o)["labels"] = copyOf(labels)
	}
}

// generateSelector sets the labels and the selector by which a Job finds its Pods.
func generateSelector(o object) {
	spec := child(o, "spec")
	if spec == nil {
		return
	}
	uid, _ := metadataOf(o)["uid"].(string)
	name, _ := metadataOf(o)["name"].(string)
	if manual, _ := spec["manualSelector"].(bool); manual {
		return
	}
	template, ok := spec["template"].(object)
	if !ok {
		return
	}
	labels, ok := metadataOf(template)["labels"].(object)
	if !ok {
		labels = object{}
		metadataOf(template)["labels"] = labels
	}
	// Validation refuses other values.
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		set(labels, prefix+"controller-uid", uid)
		set(labels, prefix+"job-name", name)
	}
	selector, ok := spec["selector"].(object)
	if !ok {
		selector = object{}
		spec["selector"] = selector
	}
	if child(selector, "matchLabels") == nil {
		selector["matchLabels"] = object{}
	}
	set(child(selector, "matchLabels"), "batch.kubernetes.io/controller-uid", uid)
}

func changedJob(o, _ object) { partLabels(o) }
