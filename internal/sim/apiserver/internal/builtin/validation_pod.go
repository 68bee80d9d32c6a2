// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validPod checks what depends on several fields of a Pod's spec. claimed are the names of volumes
// that its template does not have, but the workload.
func validPod(spec object, at *field.Path, claimed ...string) field.ErrorList {
	var errs field.ErrorList
	volumes, claims := map[string]bool{}, map[string]bool{}
	list, _ := spec["volumes"].([]any)
	for i, v := range list {
		volume, _ := v.(object)
		here := at.Child("volumes").Index(i)
		name, _ := volume["name"].(string)
		if volumes[name] {
			errs = append(errs, field.Duplicate(here.Child("name"), name))
		}
		volumes[name] = true
		claims[name] = volume["persistentVolumeClaim"] != nil || volume["ephemeral"] != nil
	}
	for _, name := range claimed {
		volumes[name], claims[name] = true, true
	}
	names := map[string]bool{}
	for _, kind := range []string{"initContainers", "containers"} {
		containers, _ := spec[kind].([]any)
		for i, c := range containers {
			container, _ := c.(object)
			here := at.Child(kind).Index(i)
			name, _ := container["name"].(string)
			if name != "" && names[name] {
				errs = append(errs, field.Duplicate(here.Child("name"), name))
			}
			names[name] = true
			errs = append(errs, mounts(container, volumes, here)...)
			errs = append(errs, devices(container, volumes, claims, here)...)
			errs = append(errs, envErrors(container, here)...)
			errs = append(errs, resourceErrors(child(container, "resources"), here.Child("resources"))...)
			errs = append(errs, portErrors(container, here)...)
			errs = append(errs, handlerErrors(container, here)...)
		}
	}
	return errs
}

func mounts(container object, volumes map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	paths := map[string]bool{}
	list, _ := container["volumeMounts"].([]any)
	for i, m := range list {
		mount, _ := m.(object)
		here := at.Child("volumeMounts").Index(i)
		name, _ := mount["name"].(string)
		if name != "" && !volumes[name] {
			errs = append(errs, field.NotFound(here.Child("name"), name))
		}
		path, _ := mount["mountPath"].(string)
		if path != "" && paths[path] {
			errs = append(errs, field.Invalid(here.Child("mountPath"), path, "must be unique"))
		}
		paths[path] = true
	}
	return errs
}

func devices(container object, volumes, claims map[string]bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	list, _ := container["volumeDevices"].([]any)
	for i, d := range list {
		device, _ := d.(object)
		name, _ := device["name"].(string)
		here := at.Child("volumeDevices").Index(i).Child("name")
		switch {
		case name == "":
		case !volumes[name]:
			errs = append(errs, field.NotFound(here, name))
		case !claims[name]:
			errs = append(errs, field.NotFound(here, name))
		}
	}
	return errs
}

func envErrors(container object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	list, _ := container["env"].([]any)
	for i, e := range list {
		env, _ := e.(object)
		from := child(env, "valueFrom")
		here := at.Child("env").Index(i).Child("valueFrom")
		if from == nil {
			continue
		}
		if value, _ := env["value"].(string); value != "" && len(from) > 0 {
			errs = append(errs, field.Invalid(here, "", "may not be specified when `value` is not empty"))
		}
		if len(from) > 1 {
			errs = append(errs, field.Invalid(here, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}

// resourceErrors checks that no request is higher than its limit.
func resourceErrors(resources object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	limits, requests := child(resources, "limits"), child(resources, "requests")
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request, ok := requests[name].(string)
		limit, limited := limits[name].(string)
		if !ok || !limited {
			continue
		}
		r, err := resource.ParseQuantity(request)
		l, other := resource.ParseQuantity(limit)
		if err == nil && other == nil && r.Cmp(l) > 0 {
			errs = append(errs, field.Invalid(at.Child("requests"), r.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, l.String())))
		}
	}
	return errs
}

func portErrors(container object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	list, _ := container["ports"].([]any)
	for i, p := range list {
		port, _ := p.(object)
		name, _ := port["name"].(string)
		if name != "" && names[name] {
			errs = append(errs, field.Duplicate(at.Child("ports").Index(i).Child("name"), name))
		}
		names[name] = true
	}
	return errs
}

// handlerErrors checks that each probe and hook has one handler.
func handlerErrors(container object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(handler object, here *field.Path, names ...string) {
		count := 0
		for _, name := range names {
			if handler[name] == nil {
				continue
			}
			if count++; count > 1 {
				errs = append(errs, field.Forbidden(here.Child(name), "may not specify more than 1 handler type"))
			}
		}
		if handler != nil && count == 0 {
			errs = append(errs, field.Required(here, "must specify a handler type"))
		}
	}
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		check(child(container, name), at.Child(name), "exec", "httpGet", "tcpSocket", "grpc")
	}
	for _, name := range []string{"postStart", "preStop"} {
		check(child(container, "lifecycle", name), at.Child("lifecycle", name), "exec", "httpGet", "tcpSocket", "sleep")
	}
	return errs
}
