// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

func deployment(o object) {
	spec := child(o, "spec")
	set(spec, "replicas", int64(1))
	rolling(spec, "strategy", object{"maxUnavailable": "25%", "maxSurge": "25%"})
	set(spec, "revisionHistoryLimit", int64(10))
	set(spec, "progressDeadlineSeconds", int64(600))
	template(spec)
}

// rolling makes a rolling update with these parameters the default strategy of a workload.
func rolling(spec object, name string, parameters object) {
	if spec == nil {
		return
	}
	strategy, ok := spec[name].(object)
	if !ok {
		strategy = object{}
		spec[name] = strategy
	}
	set(strategy, "type", "RollingUpdate")
	if strategy["type"] != "RollingUpdate" {
		return
	}
	update, ok := strategy["rollingUpdate"].(object)
	if !ok {
		update = object{}
		strategy["rollingUpdate"] = update
	}
	for parameter, value := range parameters {
		set(update, parameter, value)
	}
}

func statefulSet(o object) {
	spec := child(o, "spec")
	if spec == nil {
		return
	}
	set(spec, "podManagementPolicy", "OrderedReady")
	rolling(spec, "updateStrategy", object{"partition": int64(0)})
	if _, ok := spec["persistentVolumeClaimRetentionPolicy"].(object); !ok {
		spec["persistentVolumeClaimRetentionPolicy"] = object{}
	}
	set(child(spec, "persistentVolumeClaimRetentionPolicy"), "whenDeleted", "Retain")
	set(child(spec, "persistentVolumeClaimRetentionPolicy"), "whenScaled", "Retain")
	set(spec, "replicas", int64(1))
	set(spec, "revisionHistoryLimit", int64(10))
	template(spec)
	each(spec, "volumeClaimTemplates", func(c object) {
		c["apiVersion"], c["kind"] = "v1", "PersistentVolumeClaim" // whatever the client sets
		set(child(c, "spec"), "volumeMode", "Filesystem")
		if child(c, "status") == nil {
			c["status"] = object{}
		}
		set(child(c, "status"), "phase", "Pending")
	})
}

func daemonSet(o object) {
	if child(o, "metadata", "annotations")[templateGeneration] == nil {
		countTemplates(o, 0)
	}
	spec := child(o, "spec")
	rolling(spec, "updateStrategy", object{"maxUnavailable": int64(1), "maxSurge": int64(0)})
	set(spec, "revisionHistoryLimit", int64(10))
	template(spec)
}

func job(o object) {
	jobSpec(child(o, "spec"))
	template(child(o, "spec"))
	labelJob(o)
}

// labelJob gives a Job without labels those of its template.
func labelJob(o object) {
	if labels := child(o, "spec", "template", "metadata", "labels"); len(labels) > 0 && len(child(o, "metadata", "labels")) == 0 {
		metadataOf(o)["labels"] = labels // one map, as upstream: newJob adds its labels to both, and parts them
	}
}

func jobSpec(spec object) {
	if spec == nil {
		return
	}
	_, completions := spec["completions"]
	_, parallelism := spec["parallelism"]
	if !completions && !parallelism {
		spec["completions"] = int64(1)
	}
	set(spec, "parallelism", int64(1))
	if spec["backoffLimitPerIndex"] != nil {
		set(spec, "backoffLimit", int64(1<<31-1))
	}
	set(spec, "backoffLimit", int64(6))
	set(spec, "completionMode", "NonIndexed")
	set(spec, "suspend", false)
	set(spec, "manualSelector", false)
	each(child(spec, "podFailurePolicy"), "rules", func(r object) {
		each(r, "onPodConditions", func(c object) { set(c, "status", "True") })
	})
	if spec["podFailurePolicy"] != nil {
		set(spec, "podReplacementPolicy", "Failed")
	}
	set(spec, "podReplacementPolicy", "TerminatingOrFailed")
}

func cronJob(o object) {
	spec := child(o, "spec")
	set(spec, "concurrencyPolicy", "Allow")
	set(spec, "suspend", false)
	set(spec, "successfulJobsHistoryLimit", int64(3))
	set(spec, "failedJobsHistoryLimit", int64(1))
	template(child(spec, "jobTemplate", "spec"))
}

func autoscaler(o object) {
	spec := child(o, "spec")
	set(spec, "minReplicas", int64(1))
	if metrics, _ := spec["metrics"].([]any); len(metrics) == 0 {
		spec["metrics"] = []any{object{"type": "Resource", "resource": object{"name": "cpu", "target": object{"type": "Utilization", "averageUtilization": int64(80)}}}}
	}
	scaling(child(spec, "behavior"))
}

// scaling sets the defaults of a behavior, and nothing if there is none.
func scaling(behavior object) {
	if behavior == nil {
		return
	}
	policy := func(kind string, value int64) object {
		return object{"type": kind, "value": value, "periodSeconds": int64(15)}
	}
	for name, policies := range map[string][]any{"scaleUp": {policy("Pods", 4), policy("Percent", 100)}, "scaleDown": {policy("Percent", 100)}} {
		rules, ok := behavior[name].(object)
		if !ok {
			rules = object{}
			behavior[name] = rules
		}
		if name == "scaleUp" && rules["stabilizationWindowSeconds"] == nil {
			rules["stabilizationWindowSeconds"] = int64(0)
		}
		set(rules, "selectPolicy", "Max")
		if rules["policies"] == nil {
			rules["policies"] = policies
		}
	}
}
