// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// selectorOf returns the selector of a workload. It selects nothing if it is invalid, of which the
// rules complain.
func selectorOf(spec object) (labels.Selector, bool) {
	m, ok := spec["selector"].(object)
	if !ok {
		return nil, false
	}
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &s); err != nil {
		return nil, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	return selector, err == nil
}

func labelSet(o object) labels.Set {
	set := labels.Set{}
	for k, v := range child(o, "metadata", "labels") {
		set[k], _ = v.(string)
	}
	return set
}

// workload checks a kind with a selector and a template of Pods that are always restarted. The real
// server calls the kind by one name in one error and by another in another.
func workload(o object, name, kind string) field.ErrorList {
	at, spec := field.NewPath("spec"), child(o, "spec")
	template := child(spec, "template")
	var errs field.ErrorList
	if spec["selector"] == nil {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	} else if selector, ok := selectorOf(spec); ok {
		if selector.Empty() {
			errs = append(errs, field.Invalid(at.Child("selector"), spec["selector"], "empty selector is invalid for "+name))
		} else if set := labelSet(template); !selector.Matches(set) {
			errs = append(errs, field.Invalid(at.Child("template", "metadata", "labels"), set, "`selector` does not match template `labels`"))
		}
	}
	pod, here := child(template, "spec"), at.Child("template", "spec")
	if policy := pod["restartPolicy"]; policy != nil && policy != "Always" {
		errs = append(errs, field.NotSupported(here.Child("restartPolicy"), policy, []string{"Always"}))
	}
	if pod["activeDeadlineSeconds"] != nil {
		errs = append(errs, field.Forbidden(here.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	var claimed []string
	each(spec, "volumeClaimTemplates", func(c object) {
		name, _ := metadataOf(c)["name"].(string)
		claimed = append(claimed, name)
	})
	return append(errs, validPod(pod, here, claimed...)...)
}

// none reports whether a number or percentage is none at all.
func none(v any) bool { return v == nil || v == int64(0) || v == "0%" }

func validDeployment(o object) field.ErrorList {
	errs := workload(o, "deployment", "ReplicaSet")
	at, spec := field.NewPath("spec"), child(o, "spec")
	strategy := child(spec, "strategy")
	update := child(strategy, "rollingUpdate")
	if strategy["type"] == "Recreate" && strategy["rollingUpdate"] != nil {
		errs = append(errs, field.Forbidden(at.Child("strategy", "rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'"))
	}
	if strategy["type"] == "RollingUpdate" && update != nil && none(update["maxUnavailable"]) && none(update["maxSurge"]) {
		errs = append(errs, field.Invalid(at.Child("strategy", "rollingUpdate", "maxUnavailable"), update["maxUnavailable"], "may not be 0 when `maxSurge` is 0"))
	}
	ready, _ := spec["minReadySeconds"].(int64)
	if deadline, ok := spec["progressDeadlineSeconds"].(int64); ok && deadline <= ready {
		errs = append(errs, field.Invalid(at.Child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds"))
	}
	return errs
}

func validDaemonSet(o object) field.ErrorList {
	errs := workload(o, "daemonset", "DaemonSet")
	at := field.NewPath("spec", "updateStrategy", "rollingUpdate")
	update := child(o, "spec", "updateStrategy", "rollingUpdate")
	if child(o, "spec", "updateStrategy")["type"] != "RollingUpdate" || update == nil {
		return errs
	}
	switch unavailable, surge := !none(update["maxUnavailable"]), !none(update["maxSurge"]); {
	case unavailable && surge:
		errs = append(errs, field.Invalid(at.Child("maxSurge"), update["maxSurge"], "may not be set when maxUnavailable is non-zero"))
	case !unavailable && !surge:
		errs = append(errs, field.Required(at.Child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
	}
	return errs
}

func validJob(o object) field.ErrorList {
	at, spec := field.NewPath("spec"), child(o, "spec")
	errs := jobSpecErrors(spec, at)
	if completions, _ := spec["completions"].(int64); spec["completionMode"] == "Indexed" && completions > 0 {
		name, _ := metadataOf(o)["name"].(string)
		last := fmt.Sprintf("%s-%d", name, completions-1)
		if len(validation.IsDNS1123Label(last)) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, "will not able to create pod with invalid DNS label: "+last))
		}
	}
	if spec["selector"] == nil {
		errs = append(errs, field.Required(at.Child("selector"), ""))
	}
	selector, ok := selectorOf(spec)
	if !ok && spec["selector"] != nil {
		return errs
	}
	if manual, _ := spec["manualSelector"].(bool); !manual && ok {
		errs = append(errs, generatedSelector(o, selector)...)
	}
	labels := child(spec, "template", "metadata")["labels"]
	if selector == nil || !selector.Matches(labelSet(child(spec, "template"))) { // none matches nothing
		errs = append(errs, field.Invalid(at.Child("template", "metadata", "labels"), labels, "`selector` does not match template `labels`"))
	}
	return errs
}

// generatedSelector checks that a Job has the labels that the server gives its template.
func generatedSelector(o object, selector labels.Selector) field.ErrorList {
	at := field.NewPath("spec")
	uid, _ := metadataOf(o)["uid"].(string)
	name, _ := metadataOf(o)["name"].(string)
	template := child(o, "spec", "template")
	set, here := labelSet(template), at.Child("template", "metadata", "labels")
	var errs field.ErrorList
	want := labels.Set{}
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		for _, l := range []struct{ key, value string }{{"controller-uid", uid}, {"job-name", name}} {
			key := prefix + l.key
			want[key] = l.value
			if is, found := set[key]; !found {
				errs = append(errs, field.Required(here.Key(key), fmt.Sprintf("must be '%s'", l.value)))
			} else if is != l.value {
				errs = append(errs, field.Invalid(here.Key(key), set, fmt.Sprintf("must be '%s'", l.value)))
			}
		}
	}
	if !selector.Matches(want) {
		errs = append(errs, field.Invalid(at.Child("selector"), child(o, "spec")["selector"], "`selector` not auto-generated"))
	}
	return errs
}

// jobSpecErrors checks the spec of a Job, or that of a Job that a CronJob makes.
func jobSpecErrors(spec object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	pod, here := child(spec, "template", "spec"), at.Child("template", "spec")
	switch policy := pod["restartPolicy"]; {
	case policy == nil || policy == "Always" || policy == "":
		errs = append(errs, field.Required(here.Child("restartPolicy"), `valid values: "OnFailure", "Never"`))
	case policy != "OnFailure" && policy != "Never":
		errs = append(errs, field.NotSupported(here.Child("restartPolicy"), policy, []string{"OnFailure", "Never"}))
	case spec["podFailurePolicy"] != nil && policy != "Never":
		errs = append(errs, field.Invalid(here.Child("restartPolicy"), policy, `only "Never" is supported when podFailurePolicy is specified`))
	}
	if spec["completionMode"] == "Indexed" {
		if spec["completions"] == nil {
			errs = append(errs, field.Required(at.Child("completions"), "when completion mode is Indexed"))
		}
	} else {
		for _, name := range []string{"backoffLimitPerIndex", "maxFailedIndexes"} {
			if spec[name] != nil {
				errs = append(errs, field.Invalid(at.Child(name), spec[name], "requires indexed completion mode"))
			}
		}
		if spec["successPolicy"] != nil {
			errs = append(errs, field.Invalid(at.Child("successPolicy"), spec["successPolicy"], "requires indexed completion mode"))
		}
	}
	if spec["podFailurePolicy"] != nil && spec["podReplacementPolicy"] == "TerminatingOrFailed" {
		errs = append(errs, field.NotSupported(at.Child("podReplacementPolicy"), spec["podReplacementPolicy"], []string{"Failed"}))
	}
	return append(errs, validPod(pod, here)...)
}

func validCronJob(o object) field.ErrorList {
	at, spec := field.NewPath("spec"), child(o, "spec")
	errs := jobSpecErrors(child(spec, "jobTemplate", "spec"), at.Child("jobTemplate", "spec"))
	schedule, _ := spec["schedule"].(string)
	switch fields := strings.Fields(schedule); {
	case schedule == "" || strings.HasPrefix(schedule, "@"):
	case strings.Contains(schedule, "TZ"):
		errs = append(errs, field.Invalid(at.Child("schedule"), schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	case len(fields) != 5:
		errs = append(errs, field.Invalid(at.Child("schedule"), schedule, fmt.Sprintf("expected exactly 5 fields, found %d: %v", len(fields), fields)))
	}
	if name, _ := metadataOf(o)["name"].(string); len(name) > 52 {
		errs = append(errs, field.Invalid(field.NewPath("metadata").Child("name"), name, "must be no more than 52 characters"))
	}
	return errs
}

func validAutoscaler(o object) field.ErrorList {
	spec := child(o, "spec")
	low, _ := spec["minReplicas"].(int64)
	if high, _ := spec["maxReplicas"].(int64); high > 0 && high < low {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "maxReplicas"), high, "must be greater than or equal to `minReplicas`")}
	}
	return nil
}

func validBudget(o object) field.ErrorList {
	spec := child(o, "spec")
	if spec["minAvailable"] != nil && spec["maxUnavailable"] != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), spec, "minAvailable and maxUnavailable cannot be both set")}
	}
	return nil
}
