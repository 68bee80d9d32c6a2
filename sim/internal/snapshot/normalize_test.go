// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

func of(group, resource string, content map[string]any) apiserver.Object {
	o := object("x", nil, content)
	o.Resource = schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	return o
}

// service is one with what the server allocates.
func service(ip string, port int64) apiserver.Object {
	return of("", "services", map[string]any{
		"spec": map[string]any{
			"clusterIP": ip, "clusterIPs": []any{ip}, "healthCheckNodePort": port + 1,
			"ports": []any{map[string]any{"name": "http", "port": int64(80), "nodePort": port}},
		},
		"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1" + ip[len(ip)-1:]}}}},
	})
}

// Worlds do not differ in what the server or a controller of the cluster allocates, in the object or
// where an operator has copied it to.
func TestAllocatedValues(t *testing.T) {
	config := func(ip, port string, number int64) apiserver.Object {
		return of("", "configmaps", map[string]any{
			"data": map[string]any{"url": "http://" + ip + ":" + port + "/", "ip": ip}, "status": map[string]any{"port": number},
		})
	}
	pod := func(ip string) apiserver.Object {
		return of("", "pods", map[string]any{
			"spec":   map[string]any{"nodeName": "node-" + ip},
			"status": map[string]any{"podIP": ip, "podIPs": []any{map[string]any{"ip": ip}}, "hostIP": ip, "phase": "Running"},
		})
	}
	claim := func(volume string) apiserver.Object {
		return of("", "persistentvolumeclaims", map[string]any{"spec": map[string]any{"volumeName": volume}})
	}
	deployment := func(revision string) apiserver.Object {
		o := of("apps", "deployments", nil)
		o.Content["metadata"].(map[string]any)["annotations"] = map[string]any{"deployment.kubernetes.io/revision": revision}
		return o
	}
	daemonSet := func(generation string) apiserver.Object {
		o := of("apps", "daemonsets", nil)
		o.Content["metadata"].(map[string]any)["annotations"] = map[string]any{"deprecated.daemonset.template.generation": generation}
		return o
	}
	for name, worlds := range map[string][2][]apiserver.Object{
		"a Service": {{service("10.0.0.3", 30001)}, {service("10.0.0.4", 30002)}},
		"what refers to a Service": {
			{service("10.0.0.3", 30001), config("10.0.0.3", "30001", 30001)}, {service("10.0.0.41", 30002), config("10.0.0.41", "30002", 30002)},
		},
		"a Pod":                   {{pod("10.1.0.1")}, {pod("10.1.0.2")}},
		"a PersistentVolumeClaim": {{claim("pvc-1")}, {claim("pvc-2")}},
		"a Deployment":            {{deployment("1")}, {deployment("3")}},
		"a DaemonSet":             {{daemonSet("1")}, {daemonSet("2")}},
	} {
		if diff := take(nil, worlds[0]...).Diff(take(nil, worlds[1]...), nil); len(diff) > 0 {
			t.Errorf("%s: %v", name, diff)
		}
	}
}

// Whether there is a value, and what was asked for, is compared.
func TestAllocationsThatDiffer(t *testing.T) {
	headless := of("", "services", map[string]any{"spec": map[string]any{"clusterIP": "None"}})
	unbound := of("", "persistentvolumeclaims", map[string]any{"spec": map[string]any{}})
	bound := of("", "persistentvolumeclaims", map[string]any{"spec": map[string]any{"volumeName": "pvc-1"}})
	plain := of("", "services", map[string]any{"spec": map[string]any{"clusterIP": "10.0.0.3"}})
	ports := of("", "services", map[string]any{"spec": map[string]any{"clusterIP": "10.0.0.3", "ports": []any{map[string]any{"port": int64(81), "nodePort": int64(0)}}}})
	other := of("", "configmaps", map[string]any{"data": map[string]any{"ip": "10.0.0.3", "size": "30001"}})
	changed := of("", "configmaps", map[string]any{"data": map[string]any{"ip": "10.0.0.4", "size": "30001"}})
	for name, worlds := range map[string][2]apiserver.Object{
		"headless": {headless, plain}, "bound": {unbound, bound}, "ports": {plain, ports}, "an address that no one allocates": {other, changed},
	} {
		if diff := take(nil, worlds[0]).Diff(take(nil, worlds[1]), nil); len(diff) == 0 {
			t.Errorf("%s: no difference", name)
		}
	}
}

// How often an object was changed is no difference, wherever that is recorded.
func TestVersionsAndGenerations(t *testing.T) {
	at := func(version string, generation, observed int64) apiserver.Object {
		o := object("x", map[string]any{"generation": generation, "annotations": map[string]any{"example.com/config-resource-version": version}}, map[string]any{
			"status": map[string]any{
				"observedResourceVersion": version,
				"parents":                 []any{map[string]any{"conditions": []any{map[string]any{"type": "Ready", "observedGeneration": observed}}}},
			},
		})
		return o
	}
	if diff := take(nil, at("7", 3, 2)).Diff(take(nil, at("9", 5, 1)), nil); len(diff) > 0 {
		t.Error(diff)
	}
	if diff := take(nil, at("7", 3, 3)).Diff(take(nil, at("7", 3, 1)), nil); len(diff) != 1 || diff[0].Want != "current" || diff[0].Got != "stale" {
		t.Errorf("current and stale are no difference: %v", diff)
	}
}

func TestFields(t *testing.T) {
	fields := Fields(object("x", map[string]any{"resourceVersion": "7"}, nil).Content)
	if fields[".metadata.resourceVersion"] != "7" {
		t.Errorf("got %v, want all fields as they are", fields)
	}
}
