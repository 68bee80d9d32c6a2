// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

var servicesStorage = schema.GroupResource{Resource: "services"}

// lastNodePort is the last port that Services can have on Nodes, as with the default flags of
// kube-apiserver.
const lastNodePort = 32767

// allocate returns an address ("clusterIP") or a port ("nodePort") that no Service has.
func (g *registry) allocate(what string) string {
	for {
		value := g.minter.allocate(what)
		if !g.taken(what, value, "", "") {
			return value
		}
	}
}

// allocateMissing gives a changed Service the address and the ports that its new type needs.
func (g *registry) allocateMissing(k *kind, obj *unstructured.Unstructured) {
	spec, ok := obj.Object["spec"].(map[string]any)
	if k.storage != servicesStorage || !ok || spec["type"] == "ExternalName" {
		return
	}
	if ip, _ := spec["clusterIP"].(string); ip == "" {
		ip = g.allocate("clusterIP")
		spec["clusterIP"], spec["clusterIPs"] = ip, []any{ip}
	}
	if families, _ := spec["ipFamilies"].([]any); len(families) == 0 {
		spec["ipFamilies"], spec["ipFamilyPolicy"] = []any{"IPv4"}, "SingleStack"
	}
	builtin.HealthCheckPort(spec, g.allocate)
	if spec["type"] != "NodePort" && spec["type"] != "LoadBalancer" || spec["allocateLoadBalancerNodePorts"] == false {
		return
	}
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok && (port["nodePort"] == nil || port["nodePort"] == int64(0)) {
			number, err := strconv.ParseInt(g.allocate("nodePort"), 10, 64)
			if err == nil {
				port["nodePort"] = number
			}
		}
	}
}

// taken reports whether a Service, other than the named one, has an address or a port.
func (g *registry) taken(what, value, namespace, name string) bool {
	t := g.store.tables[servicesStorage]
	if t == nil {
		return false
	}
	return slices.ContainsFunc(t.sorted(""), func(v *version) bool {
		if v.namespace == namespace && v.name == name {
			return false
		}
		if what == "nodePort" {
			return slices.ContainsFunc(nodePortsOf(v.content), func(port int64) bool { return fmt.Sprint(port) == value })
		}
		ips, _, _ := unstructured.NestedStringSlice(v.content, "spec", "clusterIPs")
		return slices.Contains(ips, value)
	})
}

func nodePortsOf(service map[string]any) []int64 {
	spec, _ := service["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	numbers := make([]int64, len(ports))
	for i, p := range ports {
		port, _ := p.(map[string]any)
		numbers[i], _ = port["nodePort"].(int64)
	}
	return numbers
}

// checkService refuses a Service that asks for an address or a port that another one has, or for an
// address although it is only a name.
func (g *registry) checkService(k *kind, obj *unstructured.Unstructured) *failure {
	if k.storage != servicesStorage {
		return nil
	}
	invalid := func(err *field.Error) *failure {
		return fail(apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), field.ErrorList{err}))
	}
	spec, _ := obj.Object["spec"].(map[string]any)
	if ip, _ := spec["clusterIP"].(string); ip != "" && spec["type"] == "ExternalName" {
		return invalid(field.Forbidden(field.NewPath("spec", "clusterIPs"), "may not be set for ExternalName services"))
	}
	ips, _, _ := unstructured.NestedStringSlice(obj.Object, "spec", "clusterIPs")
	for _, ip := range ips {
		if ip != "None" && ip != "" && g.taken("clusterIP", ip, obj.GetNamespace(), obj.GetName()) {
			return invalid(field.Invalid(field.NewPath("spec", "clusterIPs"), ips, fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", ip)))
		}
	}
	for i, port := range nodePortsOf(obj.Object) {
		at := field.NewPath("spec", "ports").Index(i).Child("nodePort")
		switch {
		case port == 0:
		case port < firstNodePort || port > lastNodePort:
			return invalid(field.Invalid(at, port, fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", firstNodePort, lastNodePort)))
		case g.taken("nodePort", fmt.Sprint(port), obj.GetNamespace(), obj.GetName()):
			return invalid(field.Invalid(at, port, "provided port is already allocated"))
		}
	}
	return nil
}
