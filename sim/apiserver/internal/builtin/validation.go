// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fieldImmutable is the message of the real server for a changed immutable field.
const fieldImmutable = "field is immutable"

// validations are the checks of specs, which cover what operators get wrong most often. Other kinds
// are checked only in their metadata.
var validations = map[string]func(obj object) field.ErrorList{
	"/ConfigMap":       configMap,
	"/Secret":          secret,
	"/Service":         validService,
	"/Pod":             func(o object) field.ErrorList { return validPodSpec(child(o, "spec"), field.NewPath("spec")) },
	"apps/Deployment":  workload,
	"apps/ReplicaSet":  workload,
	"apps/DaemonSet":   workload,
	"apps/StatefulSet": workload,
	"batch/Job":        validJob,
}

// Validate checks a new object of a built-in kind, beyond its metadata.
func Validate(gvk schema.GroupVersionKind, obj map[string]any) field.ErrorList {
	if v, ok := validations[id(gvk)]; ok {
		return v(obj)
	}
	return nil
}

// ValidateUpdate checks a changed object of a built-in kind, beyond its metadata.
func ValidateUpdate(gvk schema.GroupVersionKind, obj, old map[string]any, subresource string) field.ErrorList {
	if subresource != "" {
		return nil
	}
	var errs field.ErrorList
	for _, path := range immutable[id(gvk)] {
		errs = append(errs, unchanged(obj, old, path)...)
	}
	if on, _ := old["immutable"].(bool); on && (id(gvk) == "/ConfigMap" || id(gvk) == "/Secret") {
		if now, _ := obj["immutable"].(bool); !now {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
		}
		for _, name := range []string{"data", "binaryData"} {
			if !reflect.DeepEqual(obj[name], old[name]) {
				errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
			}
		}
	}
	return append(errs, Validate(gvk, obj)...)
}

// immutable lists the fields that an update cannot change.
var immutable = map[string][]string{
	"apps/Deployment":                       {"spec.selector"},
	"apps/ReplicaSet":                       {"spec.selector"},
	"apps/DaemonSet":                        {"spec.selector"},
	"batch/Job":                             {"spec.completions", "spec.selector", "spec.template", "spec.completionMode", "spec.podFailurePolicy", "spec.backoffLimitPerIndex"},
	"/Secret":                               {"type"},
	"rbac.authorization.k8s.io/RoleBinding": {"roleRef"},
	"rbac.authorization.k8s.io/ClusterRoleBinding": {"roleRef"},
	"storage.k8s.io/StorageClass":                  {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
	"scheduling.k8s.io/PriorityClass":              {"value", "preemptionPolicy"},
}

func unchanged(obj, old object, path string) field.ErrorList {
	names := strings.Split(path, ".")
	at := field.NewPath(names[0], names[1:]...)
	was, is := child(old, names[:len(names)-1]...)[names[len(names)-1]], child(obj, names[:len(names)-1]...)[names[len(names)-1]]
	if reflect.DeepEqual(was, is) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, is, fieldImmutable)}
}

func configMap(o object) field.ErrorList {
	var errs field.ErrorList
	data, binary := child(o, "data"), child(o, "binaryData")
	for key := range data {
		errs = append(errs, configKey(field.NewPath("data").Key(key), key)...)
		if _, twice := binary[key]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
	}
	for key := range binary {
		errs = append(errs, configKey(field.NewPath("binaryData").Key(key), key)...)
	}
	return errs
}

func secret(o object) field.ErrorList {
	var errs field.ErrorList
	for key := range child(o, "data") {
		errs = append(errs, configKey(field.NewPath("data").Key(key), key)...)
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
	spec := child(o, "spec")
	ports, _ := spec["ports"].([]any)
	if len(ports) == 0 && spec["clusterIP"] != "None" && spec["type"] != "ExternalName" {
		return field.ErrorList{field.Required(field.NewPath("spec", "ports"), "")}
	}
	return nil
}

func workload(o object) field.ErrorList {
	spec := child(o, "spec")
	var errs field.ErrorList
	at := field.NewPath("spec")
	selector := child(spec, "selector")
	if spec["selector"] == nil {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	} else if len(child(selector, "matchLabels")) == 0 && selector["matchExpressions"] == nil {
		errs = append(errs, field.Invalid(at.Child("selector"), spec["selector"], "empty selector is invalid for deployment"))
	}
	labels := child(spec, "template", "metadata", "labels")
	for key, value := range child(selector, "matchLabels") {
		if labels[key] != value {
			errs = append(errs, field.Invalid(at.Child("template", "metadata", "labels"), labels, "`selector` does not match template `labels`"))
			break
		}
	}
	return append(errs, validPodSpec(child(spec, "template", "spec"), at.Child("template", "spec"))...)
}

func validJob(o object) field.ErrorList {
	at := field.NewPath("spec", "template", "spec")
	spec := child(o, "spec", "template", "spec")
	errs := validPodSpec(spec, at)
	if policy := spec["restartPolicy"]; policy != "OnFailure" && policy != "Never" {
		errs = append(errs, field.Required(at.Child("restartPolicy"), `valid values: "OnFailure", "Never"`))
	}
	return errs
}

func validPodSpec(spec object, at *field.Path) field.ErrorList {
	containers, _ := spec["containers"].([]any)
	if len(containers) == 0 {
		return field.ErrorList{field.Required(at.Child("containers"), "")}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i, c := range containers {
		container, _ := c.(object)
		name, _ := container["name"].(string)
		here := at.Child("containers").Index(i)
		switch {
		case name == "":
			errs = append(errs, field.Required(here.Child("name"), ""))
		case names[name]:
			errs = append(errs, field.Duplicate(here.Child("name"), name))
		default:
			for _, message := range validation.IsDNS1123Label(name) {
				errs = append(errs, field.Invalid(here.Child("name"), name, message))
			}
		}
		names[name] = true
		if image, _ := container["image"].(string); image == "" {
			errs = append(errs, field.Required(here.Child("image"), ""))
		}
	}
	return errs
}
