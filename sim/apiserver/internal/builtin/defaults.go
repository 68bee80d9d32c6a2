// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Default sets the defaults of a kind. It transcribes SetDefaults_ and the generated defaulting
// functions of k8s.io/kubernetes/pkg/apis, which this module must not import. The file is data in
// the form of functions, one per kind.
func Default(gvk schema.GroupVersionKind, obj map[string]any) {
	if d, ok := defaults[id(gvk)]; ok {
		d(obj)
	}
}

type object = map[string]any

// defaults are the functions of the kinds that have defaults.
var defaults = map[string]func(object){
	"/Pod":                                  pod,
	"/Secret":                               func(o object) { set(o, "type", "Opaque"); stringData(o) },
	"/Service":                              service,
	"/Namespace":                            namespaceLabel,
	"/PersistentVolumeClaim":                func(o object) { set(child(o, "spec"), "volumeMode", "Filesystem") },
	"/PersistentVolume":                     persistentVolume,
	"/ReplicationController":                replicationController,
	"/Endpoints":                            endpoints,
	"apps/Deployment":                       deployment,
	"apps/ReplicaSet":                       func(o object) { set(child(o, "spec"), "replicas", int64(1)); template(child(o, "spec")) },
	"apps/StatefulSet":                      statefulSet,
	"apps/DaemonSet":                        daemonSet,
	"batch/Job":                             job,
	"batch/CronJob":                         cronJob,
	"autoscaling/HorizontalPodAutoscaler":   autoscaler,
	"networking.k8s.io/NetworkPolicy":       networkPolicy,
	"rbac.authorization.k8s.io/RoleBinding": binding,
	"rbac.authorization.k8s.io/ClusterRoleBinding": binding,
	"storage.k8s.io/StorageClass": func(o object) {
		set(o, "reclaimPolicy", "Delete")
		set(o, "volumeBindingMode", "Immediate")
	},
	"scheduling.k8s.io/PriorityClass":                             func(o object) { set(o, "preemptionPolicy", "PreemptLowerPriority") },
	"discovery.k8s.io/EndpointSlice":                              endpointSlice,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration": webhooks,
	"admissionregistration.k8s.io/MutatingWebhookConfiguration":   func(o object) { webhooks(o); reinvocation(o) },
	"apiextensions.k8s.io/CustomResourceDefinition":               definition,
}

// set sets a field if it is not set.
func set(o object, name string, value any) {
	if o == nil {
		return
	}
	if v, ok := o[name]; !ok || v == nil || v == "" {
		o[name] = value
	}
}

// child returns a field that is an object, or nil. Setting a field of nil does nothing.
func child(o object, path ...string) object {
	for _, name := range path {
		next, _ := o[name].(object)
		if next == nil {
			return nil
		}
		o = next
	}
	return o
}

// each calls f with the objects of a list.
func each(o object, name string, f func(object)) {
	list, _ := o[name].([]any)
	for _, e := range list {
		if element, ok := e.(object); ok {
			f(element)
		}
	}
}

func pod(o object) {
	spec := child(o, "spec")
	podSpec(spec)
	set(spec, "enableServiceLinks", true)
	hostNetwork(spec)
	each(spec, "containers", requests)
	each(spec, "initContainers", requests)
}

func template(spec object) {
	podSpec(child(spec, "template", "spec"))
	hostNetwork(child(spec, "template", "spec"))
}

func podSpec(spec object) {
	if spec == nil {
		return
	}
	set(spec, "restartPolicy", "Always")
	set(spec, "dnsPolicy", "ClusterFirst")
	set(spec, "schedulerName", "default-scheduler")
	set(spec, "terminationGracePeriodSeconds", int64(30))
	if _, ok := spec["securityContext"]; !ok {
		spec["securityContext"] = object{}
	}
	if account, _ := spec["serviceAccountName"].(string); account != "" {
		spec["serviceAccount"] = account
	} else if account, _ := spec["serviceAccount"].(string); account != "" {
		spec["serviceAccountName"] = account
	}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		each(spec, list, container)
	}
	each(spec, "volumes", volume)
}

// hostNetwork sets the host ports of a Pod in the network of its Node.
func hostNetwork(spec object) {
	if on, _ := spec["hostNetwork"].(bool); !on {
		return
	}
	for _, list := range []string{"containers", "initContainers"} {
		each(spec, list, func(c object) {
			each(c, "ports", func(p object) { set(p, "hostPort", p["containerPort"]) })
		})
	}
}

func container(c object) {
	set(c, "terminationMessagePath", "/dev/termination-log")
	set(c, "terminationMessagePolicy", "File")
	image, _ := c["image"].(string)
	set(c, "imagePullPolicy", pullPolicy(image))
	if _, ok := c["resources"]; !ok {
		c["resources"] = object{}
	}
	each(c, "ports", func(p object) { set(p, "protocol", "TCP") })
	each(c, "env", func(e object) {
		set(child(e, "valueFrom", "fieldRef"), "apiVersion", "v1")
		if r := child(e, "valueFrom", "resourceFieldRef"); r != nil {
			set(r, "divisor", "0")
		}
	})
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		probe(child(c, name))
	}
	delete(child(c, "lifecycle"), "stopSignal") // its feature is not enabled
	for _, name := range []string{"postStart", "preStop"} {
		httpGet(child(c, "lifecycle", name, "httpGet"))
	}
}

func probe(p object) {
	if p == nil {
		return
	}
	for name, value := range map[string]int64{"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3} {
		if p[name] == int64(0) {
			delete(p, name)
		}
		set(p, name, value)
	}
	httpGet(child(p, "httpGet"))
	if grpc := child(p, "grpc"); grpc != nil {
		if grpc["service"] == nil {
			grpc["service"] = ""
		}
	}
}

func httpGet(h object) {
	set(h, "path", "/")
	set(h, "scheme", "HTTP")
}

// requests sets the requests of a container to its limits, as upstream does in Pods but not in Pod
// templates.
func requests(c object) {
	resources := child(c, "resources")
	limits := child(resources, "limits")
	if len(limits) == 0 {
		return
	}
	requests, ok := resources["requests"].(object)
	if !ok {
		requests = object{}
		resources["requests"] = requests
	}
	for name, quantity := range limits {
		set(requests, name, quantity)
	}
}

// pullPolicy returns Always for images without a tag or with the tag latest, and else IfNotPresent.
func pullPolicy(image string) string {
	name := image[strings.LastIndex(image, "/")+1:]
	if strings.Contains(name, "@") {
		return "IfNotPresent"
	}
	_, tag, tagged := strings.Cut(name, ":")
	if !tagged || tag == "latest" {
		return "Always"
	}
	return "IfNotPresent"
}

func volume(v object) {
	sources := 0
	for name := range v {
		if name != "name" {
			sources++
		}
	}
	if sources == 0 {
		v["emptyDir"] = object{}
	}
	for _, name := range []string{"secret", "configMap", "downwardAPI"} {
		set(child(v, name), "defaultMode", int64(0o644))
	}
	projected := child(v, "projected")
	set(projected, "defaultMode", int64(0o644))
	each(projected, "sources", func(s object) {
		set(child(s, "serviceAccountToken"), "expirationSeconds", int64(3600))
		each(child(s, "downwardAPI"), "items", func(i object) { set(child(i, "fieldRef"), "apiVersion", "v1") })
	})
	each(child(v, "downwardAPI"), "items", func(i object) { set(child(i, "fieldRef"), "apiVersion", "v1") })
	if h := child(v, "hostPath"); h != nil {
		if _, ok := h["type"]; !ok {
			h["type"] = ""
		}
	}
	if i := child(v, "iscsi"); i != nil {
		set(i, "iscsiInterface", "default")
	}
	if r := child(v, "rbd"); r != nil {
		set(r, "pool", "rbd")
		set(r, "user", "admin")
		set(r, "keyring", "/etc/ceph/keyring")
	}
	if claim := child(v, "ephemeral", "volumeClaimTemplate", "spec"); claim != nil {
		set(claim, "volumeMode", "Filesystem")
	}
}

func service(o object) {
	spec := child(o, "spec")
	if spec == nil {
		return
	}
	set(spec, "sessionAffinity", "None")
	if spec["type"] == "LoadBalancer" {
		each(child(o, "status", "loadBalancer"), "ingress", func(in object) {
			if ip, _ := in["ip"].(string); ip != "" {
				set(in, "ipMode", "VIP")
			}
		})
	}
	if spec["sessionAffinity"] == "ClientIP" {
		if child(spec, "sessionAffinityConfig", "clientIP") == nil {
			spec["sessionAffinityConfig"] = object{"clientIP": object{"timeoutSeconds": int64(10800)}}
		}
	}
	set(spec, "type", "ClusterIP")
	each(spec, "ports", func(p object) {
		set(p, "protocol", "TCP")
		if target := p["targetPort"]; target == nil || target == int64(0) || target == "" {
			p["targetPort"] = p["port"]
		}
	})
	switch spec["type"] {
	case "NodePort", "LoadBalancer":
		set(spec, "externalTrafficPolicy", "Cluster")
	}
	if spec["type"] == "LoadBalancer" {
		set(spec, "allocateLoadBalancerNodePorts", true)
	}
	switch spec["type"] {
	case "NodePort", "LoadBalancer", "ClusterIP":
		set(spec, "internalTrafficPolicy", "Cluster")
	}
}

func namespaceLabel(o object) {
	m := metadataOf(o)
	name, _ := m["name"].(string)
	if name == "" {
		return
	}
	labels, ok := m["labels"].(object)
	if !ok {
		labels = object{}
		m["labels"] = labels
	}
	labels["kubernetes.io/metadata.name"] = name
}

func persistentVolume(o object) {
	spec := child(o, "spec")
	set(spec, "persistentVolumeReclaimPolicy", "Retain")
	set(spec, "volumeMode", "Filesystem")
	if h := child(spec, "hostPath"); h != nil && h["type"] == nil {
		h["type"] = ""
	}
}

func replicationController(o object) {
	spec := child(o, "spec")
	labels := child(spec, "template", "metadata", "labels")
	if len(labels) > 0 {
		if len(child(spec, "selector")) == 0 {
			spec["selector"] = copyOf(labels)
		}
		if len(child(o, "metadata", "labels")) == 0 {
			metadataOf(o)["labels"] = copyOf(labels)
		}
	}
	set(spec, "replicas", int64(1))
	template(spec)
}

func copyOf(o object) object {
	out := make(object, len(o))
	for k, v := range o {
		out[k] = v
	}
	return out
}

func endpoints(o object) {
	each(o, "subsets", func(s object) {
		each(s, "ports", func(p object) { set(p, "protocol", "TCP") })
	})
}

func endpointSlice(o object) {
	each(o, "ports", func(p object) {
		if _, ok := p["name"]; !ok {
			p["name"] = ""
		}
		set(p, "protocol", "TCP")
	})
}

func networkPolicy(o object) {
	spec := child(o, "spec")
	if spec == nil {
		return
	}
	if policyTypes, _ := spec["policyTypes"].([]any); len(policyTypes) == 0 {
		policyTypes = []any{"Ingress"}
		if egress, _ := spec["egress"].([]any); len(egress) > 0 {
			policyTypes = append(policyTypes, "Egress")
		}
		spec["policyTypes"] = policyTypes
	}
	for _, list := range []string{"ingress", "egress"} {
		each(spec, list, func(rule object) {
			each(rule, "ports", func(p object) { set(p, "protocol", "TCP") })
		})
	}
}

func binding(o object) {
	set(child(o, "roleRef"), "apiGroup", "rbac.authorization.k8s.io")
	each(o, "subjects", func(s object) {
		if s["kind"] == "User" || s["kind"] == "Group" {
			set(s, "apiGroup", "rbac.authorization.k8s.io")
		}
	})
}

func webhooks(o object) {
	each(o, "webhooks", func(w object) {
		set(w, "failurePolicy", "Fail")
		set(w, "matchPolicy", "Equivalent")
		set(w, "timeoutSeconds", int64(10))
		for _, name := range []string{"namespaceSelector", "objectSelector"} {
			if _, ok := w[name]; !ok {
				w[name] = object{}
			}
		}
		each(w, "rules", func(r object) { set(r, "scope", "*") })
		set(child(w, "clientConfig", "service"), "port", int64(443))
	})
}

func reinvocation(o object) {
	each(o, "webhooks", func(w object) { set(w, "reinvocationPolicy", "Never") })
}

func definition(o object) {
	spec := child(o, "spec")
	names := child(spec, "names")
	kind, _ := names["kind"].(string)
	set(names, "singular", strings.ToLower(kind))
	if kind != "" {
		set(names, "listKind", kind+"List")
	}
	if _, ok := spec["conversion"].(object); !ok && spec != nil {
		spec["conversion"] = object{"strategy": "None"}
	}
}
