// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fieldImmutable is the message of the real server for a changed immutable field.
const fieldImmutable = "field is immutable"

// validations check what depends on several fields. What depends on one is in rules.json.
var validations = map[string]func(obj object) field.ErrorList{
	"/ConfigMap":                          configMap,
	"/Secret":                             secret,
	"/Service":                            validService,
	"/PersistentVolumeClaim":              validClaim,
	"/Event":                              validEvent,
	"events.k8s.io/Event":                 validEvent,
	"/Pod":                                func(o object) field.ErrorList { return validPod(child(o, "spec"), field.NewPath("spec")) },
	"apps/Deployment":                     validDeployment,
	"apps/ReplicaSet":                     func(o object) field.ErrorList { return workload(o, "deployment", "ReplicaSet") },
	"apps/DaemonSet":                      validDaemonSet,
	"apps/StatefulSet":                    func(o object) field.ErrorList { return workload(o, "statefulset", "StatefulSet") },
	"batch/Job":                           validJob,
	"batch/CronJob":                       validCronJob,
	"autoscaling/HorizontalPodAutoscaler": validAutoscaler,
	"policy/PodDisruptionBudget":          validBudget,
	"networking.k8s.io/Ingress":           validIngress,
	signingRequest:                        validSigningRequest,
}

// changes check what an update changes, where that depends on several fields.
var changes = map[string]func(obj, old object) field.ErrorList{
	"/ConfigMap":             fixed,
	"/Secret":                fixed,
	"/Service":               changedIPs,
	"/PersistentVolumeClaim": changedClaim,
	"/PersistentVolume":      changedVolume,
	"/Pod":                   changedPodSpec,
	"batch/Job":              changedCompletions,
	"apiextensions.k8s.io/CustomResourceDefinition": changedScope,
	"networking.k8s.io/IngressClass":                changedController,
}

// Validate checks a new object of a built-in kind, beyond its metadata.
func Validate(gvk schema.GroupVersionKind, obj map[string]any) field.ErrorList {
	errs := checkRules(gvk, obj)
	if v, ok := validations[id(gvk)]; ok {
		errs = append(errs, v(obj)...)
	}
	return errs
}

// ValidatesMetadataLast reports whether the metadata of a new object is checked only if nothing else
// is refused.
func ValidatesMetadataLast(gvk schema.GroupVersionKind) bool {
	return id(gvk) == "policy/PodDisruptionBudget"
}

// ValidateUpdate checks a changed object of a built-in kind, beyond its metadata.
func ValidateUpdate(gvk schema.GroupVersionKind, obj, old map[string]any, subresource string) field.ErrorList {
	switch {
	case id(gvk) == signingRequest:
		return changedSigningRequest(obj, old, subresource)
	case subresource == "status" && id(gvk) == "batch/Job":
		return jobStatus(obj, old)
	case subresource == "status" && id(gvk) == "/Service":
		return serviceStatus(obj)
	case subresource != "":
		return nil
	}
	var errs field.ErrorList
	if id(gvk) == "/Pod" {
		if errs := otherContainers(obj, old); len(errs) > 0 {
			return append(errs, Validate(gvk, obj)...) // as upstream, nothing else is compared then
		}
	}
	if change, ok := changes[id(gvk)]; ok {
		errs = change(obj, old)
	}
	if id(gvk) == "batch/Job" && reschedulable(old) {
		for _, e := range checkConstants(gvk, obj, schedulable(obj, old)) {
			if e.Field == "spec.template" {
				e.Field = "spec.template.spec"
			}
			errs = append(errs, e)
		}
	} else if id(gvk) == "/Pod" {
		errs = append(errs, checkConstants(gvk, obj, ungated(obj, old))...)
	} else if id(gvk) != "/PersistentVolumeClaim" { // changedClaim knows which parts change
		errs = append(errs, checkConstants(gvk, obj, old)...)
		switch id(gvk) {
		case "batch/Job":
			errs = append(errs, changedLabels(obj, old)...)
		case "/Service":
			if !needsHealthCheck(child(obj, "spec")) || !needsHealthCheck(child(old, "spec")) {
				errs = slices.DeleteFunc(errs, func(e *field.Error) bool { return e.Field == "spec.healthCheckNodePort" })
			}
		}
	}
	return append(errs, Validate(gvk, obj)...)
}

// fixed checks a ConfigMap or Secret that may be immutable.
func fixed(obj, old object) field.ErrorList {
	if on, _ := old["immutable"].(bool); !on {
		return nil
	}
	var errs field.ErrorList
	if now, _ := obj["immutable"].(bool); !now {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	for _, name := range []string{"data", "binaryData"} {
		if !equal(obj[name], old[name]) {
			errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
		}
	}
	return errs
}

// otherContainers checks that a Pod keeps the number of its containers.
func otherContainers(obj, old object) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct{ name, text string }{{"containers", "containers"}, {"initContainers", "init containers"}} {
		is, _ := child(obj, "spec")[list.name].([]any)
		was, _ := child(old, "spec")[list.name].([]any)
		if len(is) != len(was) {
			return append(errs, field.Forbidden(field.NewPath("spec", list.name), "pod updates may not add or remove "+list.text))
		}
	}
	return errs
}

func changedPodSpec(obj, old object) field.ErrorList {
	return append(changedTolerations(obj, old), newGates(obj, old)...)
}

// newGates checks that a Pod gets no scheduling gates after its creation.
func newGates(obj, old object) field.ErrorList {
	before := map[any]bool{}
	each(child(old, "spec"), "schedulingGates", func(o object) { before[o["name"]] = true })
	list, _ := child(obj, "spec")["schedulingGates"].([]any)
	var errs field.ErrorList
	for i := range list {
		if gate, _ := list[i].(object); !before[gate["name"]] {
			at := field.NewPath("spec", "schedulingGates").Index(i).Child("name")
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate["name"])))
		}
	}
	return errs
}

// changedTolerations checks that a Pod keeps its tolerations, but for their seconds.
func changedTolerations(obj, old object) field.ErrorList {
	list, _ := child(obj, "spec")["tolerations"].([]any)
	kept := func(o object) bool {
		for _, e := range list {
			if n, ok := e.(object); ok && !changedExcept(n, o, "", []string{"tolerationSeconds"}) {
				return true
			}
		}
		return false
	}
	var errs field.ErrorList
	each(child(old, "spec"), "tolerations", func(o object) {
		if !kept(o) && len(errs) == 0 {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "tolerations"), "existing toleration can not be modified except its tolerationSeconds"))
		}
	})
	return errs
}

// changedIPs checks the addresses and families of a Service, which change only with its type.
func changedIPs(obj, old object) field.ErrorList {
	spec, before := child(obj, "spec"), child(old, "spec")
	if spec["type"] == "ExternalName" || before["type"] == "ExternalName" {
		return nil
	}
	var errs field.ErrorList
	for _, name := range []string{"clusterIPs", "ipFamilies"} {
		is, _ := spec[name].([]any)
		was, _ := before[name].([]any)
		for i := range min(len(is), len(was)) {
			if is[i] != was[i] {
				errs = append(errs, field.Invalid(field.NewPath("spec", name).Index(i), is, "may not change once set"))
			}
		}
	}
	return errs
}

const claimFixed = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"

// changedClaim checks a changed PersistentVolumeClaim: a bound one may change its requests and its
// attributes class, and one that has no volume yet may get one.
func changedClaim(obj, old object) field.ErrorList {
	spec, before := copyOf(child(obj, "spec")), child(old, "spec")
	var errs field.ErrorList
	bound := child(obj, "status")["phase"] == "Bound"
	if bound {
		spec["resources"], spec["volumeAttributesClassName"] = before["resources"], before["volumeAttributesClassName"]
	}
	if before["volumeName"] == nil || before["volumeName"] == "" {
		spec["volumeName"] = before["volumeName"]
	}
	if before["storageClassName"] == nil {
		spec["storageClassName"] = nil // a class that is the default may be filled in later
	}
	for _, name := range []string{"dataSource", "dataSourceRef"} {
		if spec[name] == nil {
			spec[name] = before[name] // one is filled in from the other
		}
	}
	if changedExcept(spec, before, "", nil) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), claimFixed))
	}
	if !equal(child(obj, "spec")["volumeMode"], before["volumeMode"]) {
		errs = append(errs, field.Invalid(field.NewPath("volumeMode"), spec["volumeMode"], fieldImmutable))
	}
	storage := []string{"resources", "requests", "storage"}
	is, was := quantityAt(child(obj, "spec"), storage...), quantityAt(before, storage...)
	if is.Cmp(was) < 0 && is.Cmp(quantityAt(child(obj, "status"), "capacity", "storage")) <= 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", storage...), "field can not be less than status.capacity"))
	}
	return errs
}

// changedVolume checks that a PersistentVolume stays where it is: all fields but those that are of any
// volume say that.
func changedVolume(obj, old object) field.ErrorList {
	const source = "spec.persistentvolumesource"
	common := []string{
		"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy", "storageClassName", "volumeMode", "volumeAttributesClassName",
	}
	if !changedExcept(child(obj, "spec"), child(old, "spec"), "", common) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "persistentvolumesource"), source+" is immutable after creation")}
}

// changedController checks that an IngressClass keeps its controller.
func changedController(obj, old object) field.ErrorList {
	if is := child(obj, "spec")["controller"]; is != child(old, "spec")["controller"] {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "controller"), is, fieldImmutable)}
	}
	return nil
}

// changedScope checks that a definition keeps its scope.
func changedScope(obj, old object) field.ErrorList {
	if is := child(obj, "spec")["scope"]; is != child(old, "spec")["scope"] {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "scope"), is, fieldImmutable)}
	}
	return nil
}

// reschedulable reports whether a Job may change where its Pods run: it is suspended and has none.
func reschedulable(old object) bool {
	suspended, _ := child(old, "spec")["suspend"].(bool)
	state := stateOf(old)
	return suspended && state.number("active") == 0 && (state.status["startTime"] == nil || state.conditions["Suspended"])
}

// changedLabels checks the labels of the template of a Job, which change only where the scheduling
// does. Other changes of the template are refused by the rules.
func changedLabels(obj, old object) field.ErrorList {
	is, was := child(obj, "spec", "template"), child(old, "spec", "template")
	if equal(child(is, "metadata")["labels"], child(was, "metadata")["labels"]) || changedExcept(is, was, "", []string{"metadata.labels"}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "template"), is, fieldImmutable)}
}

// schedulable returns the old state of a suspended Job with the scheduling directives and resources
// of the new one, which may change until the Job runs.
func schedulable(obj, old object) object {
	out := runtime.DeepCopyJSON(old)
	is, was := child(obj, "spec", "template"), child(out, "spec", "template")
	if is == nil || was == nil {
		return out
	}
	for _, name := range []string{"labels", "annotations"} {
		keep(metadataOf(was), child(is, "metadata"), name)
	}
	spec, before := child(is, "spec"), child(was, "spec")
	if spec == nil || before == nil {
		return out
	}
	for _, name := range []string{"nodeSelector", "tolerations", "schedulingGates", "affinity"} {
		keep(before, spec, name)
	}
	for _, name := range []string{"containers", "initContainers"} {
		list, _ := spec[name].([]any)
		old, _ := before[name].([]any)
		for i := range min(len(list), len(old)) {
			a, _ := list[i].(object)
			b, _ := old[i].(object)
			if a != nil && b != nil {
				keep(b, a, "resources")
			}
		}
	}
	return out
}

// changedCompletions checks the completions of a Job: those of an indexed one change with its
// parallelism.
func changedCompletions(obj, old object) field.ErrorList {
	spec, before := child(obj, "spec"), child(old, "spec")
	at := field.NewPath("spec", "completions")
	var errs field.ErrorList
	if mode := spec["completionMode"]; mode != before["completionMode"] {
		errs = append(errs, field.Invalid(field.NewPath("spec", "completionMode"), mode, fieldImmutable))
	}
	switch {
	case reflect.DeepEqual(spec["completions"], before["completions"]):
	case spec["completionMode"] != "Indexed":
		errs = append(errs, field.Invalid(at, spec["completions"], fieldImmutable))
	case spec["completions"] != nil && spec["completions"] != spec["parallelism"]:
		errs = append(errs, field.Invalid(at, spec["completions"], "can only be modified in tandem with spec.parallelism"))
	}
	return errs
}
