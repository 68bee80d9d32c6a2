// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDataSize is the limit of the data of a ConfigMap or Secret, in bytes.
const maxDataSize = 1 << 20

// dataSize returns the size of data, and of encoded data before it was encoded.
func dataSize(plain, encoded object) int {
	size := 0
	for _, v := range plain {
		text, _ := v.(string)
		size += len(text)
	}
	for _, v := range encoded {
		text, _ := v.(string)
		size += base64.StdEncoding.DecodedLen(len(text))
		for i := len(text) - 1; i >= 0 && text[i] == '='; i-- {
			size--
		}
	}
	return size
}

func configMap(o object) field.ErrorList {
	var errs field.ErrorList
	data, binary := child(o, "data"), child(o, "binaryData")
	for _, key := range slices.Sorted(maps.Keys(data)) {
		errs = append(errs, configKey(field.NewPath("data").Key(key), key)...)
		if _, twice := binary[key]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(binary)) {
		errs = append(errs, configKey(field.NewPath("binaryData").Key(key), key)...)
	}
	if dataSize(data, binary) > maxDataSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxDataSize))
	}
	return errs
}

// requiredData are the keys that the data of a type of Secret has.
var requiredData = map[string][]string{
	"kubernetes.io/tls": {"tls.crt", "tls.key"}, "kubernetes.io/dockercfg": {".dockercfg"},
	"kubernetes.io/dockerconfigjson": {".dockerconfigjson"}, "kubernetes.io/ssh-auth": {"ssh-privatekey"},
}

func secret(o object) field.ErrorList {
	var errs field.ErrorList
	at, data := field.NewPath("data"), child(o, "data")
	for _, key := range slices.Sorted(maps.Keys(data)) {
		errs = append(errs, configKey(at.Key(key), key)...)
	}
	if dataSize(nil, data) > maxDataSize {
		errs = append(errs, field.TooLong(at, "", maxDataSize))
	}
	kind, _ := o["type"].(string)
	for _, key := range requiredData[kind] {
		value, ok := data[key].(string)
		if !ok || value == "" && kind == "kubernetes.io/ssh-auth" {
			errs = append(errs, field.Required(at.Key(key), ""))
			continue
		}
		if kind == "kubernetes.io/dockercfg" || kind == "kubernetes.io/dockerconfigjson" {
			plain, _ := base64.StdEncoding.DecodeString(value) //nolint:errcheck // it was decoded before
			if err := json.Unmarshal(plain, &map[string]any{}); err != nil {
				errs = append(errs, field.Invalid(at.Key(key), "<secret contents redacted>", err.Error()))
			}
		}
	}
	_, user := data["username"]
	_, password := data["password"]
	if kind == "kubernetes.io/basic-auth" && !user && !password {
		errs = append(errs, field.Required(at.Key("username"), ""), field.Required(at.Key("password"), ""))
	}
	if account, _ := child(o, "metadata", "annotations")["kubernetes.io/service-account.name"].(string); kind == "kubernetes.io/service-account-token" && account == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key("kubernetes.io/service-account.name"), ""))
	}
	return errs
}

func configKey(at *field.Path, key string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(at, key, message))
	}
	return errs
}

func validService(o object) field.ErrorList {
	at, spec := field.NewPath("spec"), child(o, "spec")
	ports, _ := spec["ports"].([]any)
	external := spec["type"] == "ExternalName"
	var errs field.ErrorList
	if len(ports) == 0 && spec["clusterIP"] != "None" && !external {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	if name, _ := spec["externalName"].(string); external && name == "" {
		errs = append(errs, field.Required(at.Child("externalName"), ""))
	}
	if spec["clusterIP"] == "None" && (spec["type"] == "NodePort" || spec["type"] == "LoadBalancer") {
		errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), "None", fmt.Sprintf("may not be set to 'None' for %s services", spec["type"])))
	}
	errs = append(errs, serviceType(spec, at)...)
	return append(errs, servicePorts(spec, at)...)
}

// serviceType checks what only Services of some types may set.
func serviceType(spec object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if class, _ := spec["loadBalancerClass"].(string); class != "" && spec["type"] != "LoadBalancer" {
		errs = append(errs, field.Forbidden(at.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"))
	}
	if spec["allocateLoadBalancerNodePorts"] != nil && spec["type"] != "LoadBalancer" {
		errs = append(errs, field.Forbidden(at.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'"))
	}
	outside, _ := spec["externalIPs"].([]any)
	if policy, _ := spec["externalTrafficPolicy"].(string); policy != "" {
		switch {
		case spec["type"] != "LoadBalancer" && spec["type"] != "NodePort" && len(outside) == 0:
			errs = append(errs, field.Invalid(at.Child("externalTrafficPolicy"), policy, "may only be set for externally-accessible services"))
		case policy != "Local" && policy != "Cluster":
			errs = append(errs, field.NotSupported(at.Child("externalTrafficPolicy"), policy, []string{"Cluster", "Local"}))
		}
	}
	ips, _ := spec["clusterIPs"].([]any)
	ip, _ := spec["clusterIP"].(string)
	if ip != "" && len(ips) > 0 && ips[0] != ip {
		errs = append(errs, field.Invalid(at.Child("clusterIPs"), ips, "first value must match `clusterIP`"))
	}
	return errs
}

// servicePorts checks that the ports differ, and have the names that several ports need.
// serviceStatus checks the status of a Service.
func serviceStatus(o object) field.ErrorList {
	list, _ := child(o, "status", "loadBalancer")["ingress"].([]any)
	if len(list) == 0 || child(o, "spec")["type"] == "LoadBalancer" {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("status", "loadBalancer", "ingress"), "may only be used when `spec.type` is 'LoadBalancer'")}
}

func servicePorts(spec object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	ports, _ := spec["ports"].([]any)
	names, seen := map[string]bool{}, map[[2]any]bool{}
	for i, p := range ports {
		port, _ := p.(object)
		here := at.Child("ports").Index(i)
		name, _ := port["name"].(string)
		switch {
		case name == "" && len(ports) > 1:
			errs = append(errs, field.Required(here.Child("name"), ""))
		case name != "" && names[name]:
			errs = append(errs, field.Duplicate(here.Child("name"), name))
		}
		names[name] = true
		if port["targetPort"] == int64(0) { // the default is the port, which is 0 too
			errs = append(errs, field.Invalid(here.Child("targetPort"), int64(0), "must be between 1 and 65535, inclusive"))
		}
		key := [2]any{port["protocol"], port["port"]}
		if seen[key] {
			errs = append(errs, field.Duplicate(here, port))
		}
		seen[key] = true
		if node, _ := port["nodePort"].(int64); node != 0 && spec["type"] == "ClusterIP" {
			errs = append(errs, field.Forbidden(here.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
	}
	return errs
}

func validClaim(o object) field.ErrorList {
	at, storage := field.NewPath("spec", "resources").Key("storage"), child(o, "spec", "resources", "requests")["storage"]
	if storage == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if q := quantityAt(child(o, "spec"), "resources", "requests", "storage"); q.Sign() <= 0 {
		return field.ErrorList{field.Invalid(at, storage, "must be greater than zero")}
	}
	return nil
}

// quantityAt returns a quantity, or zero.
func quantityAt(o object, path ...string) resource.Quantity {
	text, _ := child(o, path[:len(path)-1]...)[path[len(path)-1]].(string)
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}
	}
	return q
}
