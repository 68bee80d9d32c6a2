// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are the built-in kinds that have rules: of kstatus, and where that has none or another
// meaning, of this package.
var kinds = map[schema.GroupKind]func(*document) Health{
	{Kind: "Service"}:                   ofService,
	{Kind: "Pod"}:                       ofPod,
	{Kind: "Node"}:                      ofNode,
	{Kind: "Namespace"}:                 ofPhase,
	{Kind: "PersistentVolume"}:          ofVolume,
	{Kind: "PersistentVolumeClaim"}:     ofClaim,
	{Group: "apps", Kind: "Deployment"}: ofReplicaSet,
	{Group: "apps", Kind: "ReplicaSet"}: ofReplicaSet,
	{Group: "apps", Kind: "DaemonSet"}:  ofDaemonSet, {Group: "apps", Kind: "StatefulSet"}: byKstatus,
	{Group: "policy", Kind: "PodDisruptionBudget"}: byKstatus,
	{Group: "batch", Kind: "CronJob"}:              byKstatus,
	{Group: "batch", Kind: "Job"}:                  ofJob,

	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           ofAutoscaler,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:               ofAttachment,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: ofSigningRequest,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: byKstatus,
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                 ofResourceClaim,

	{Group: "argoproj.io", Kind: "Application"}:     ofApplication,
	{Group: "cert-manager.io", Kind: "Certificate"}: ofCertificate,
	{Group: "kubevirt.io", Kind: "VirtualMachine"}:  ofMachine,
}

// ofJob judges a Job by its end. To kstatus, it is current from its start.
func ofJob(d *document) Health {
	if c, ok := d.first([]string{"Failed", "FailureTarget"}, "True"); ok {
		return c.says(StateFailed)
	}
	if _, ok := d.first([]string{"Complete"}, "True"); ok {
		return Health{State: StateReady}
	}
	if c, ok := d.first([]string{"Suspended"}, "True"); ok {
		return Health{StateProgressing, c.reasonOr("Suspended"), "it is suspended"}
	}
	if s := byKstatus(d); s.State != StateReady {
		return s
	}
	wanted, ok := d.number("spec", "completions")
	if !ok {
		wanted = 1
	}
	succeeded, _ := d.number("status", "succeeded")
	return Health{StateProgressing, "JobInProgress", fmt.Sprintf("%d of %d Pods succeeded", succeeded, wanted)}
}

// ofReplicaSet adds to kstatus why Pods could not be created: without it, only their number would
// be known.
func ofReplicaSet(d *document) Health {
	s := byKstatus(d)
	if c, ok := d.first([]string{"ReplicaFailure"}, "True"); ok && s.State != StateReady {
		return c.says(StateFailed)
	}
	return s
}

// ofDaemonSet judges a DaemonSet. With OnDelete, its controller does not update Pods, so that it is
// ready with old ones, as a StatefulSet is; to kstatus, only the latter.
func ofDaemonSet(d *document) Health {
	if d.text("spec", "updateStrategy", "type") != "OnDelete" {
		return byKstatus(d)
	}
	status := maps.Clone(d.status)
	if status != nil {
		status["updatedNumberScheduled"] = status["desiredNumberScheduled"]
	}
	content := maps.Clone(d.content)
	content["status"] = status
	as := *d
	as.content, as.status = content, status
	return byKstatus(&as)
}

// ofPod judges a Pod. That of kstatus reads the clock for a Pod that can't be scheduled, and takes
// one that has failed for current.
func ofPod(d *document) Health {
	switch phase := d.text("status", "phase"); phase {
	case "Succeeded":
		return Health{State: StateReady}
	case "Failed":
		reason, message := d.text("status", "reason"), d.text("status", "message")
		if message == "" {
			message = "it has ended, and not successfully"
		}
		return Health{StateFailed, cmp.Or(reason, "PodFailed"), message}
	case "Running", "Pending":
		if s, ok := d.crashing(); ok {
			return s
		}
		if c, ok := d.first([]string{"PodScheduled"}, "False"); ok {
			return c.says(StateProgressing)
		}
		if c, ok := d.first([]string{"Ready"}, "True"); ok && phase == "Running" && !c.stale {
			return Health{State: StateReady}
		}
		return Health{StateProgressing, "Pod" + phase, "it is " + strings.ToLower(phase) + ", and not ready"}
	case "":
		return Health{StateProgressing, "PodPending", "it has not been scheduled"}
	default:
		return unknown("PodUnknown", "its phase is "+phase)
	}
}

// crashReasons are what a container waits for that does not come without a change.
var crashReasons = []string{"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}

// crashing returns the failure of the first container by name that can't run.
func (d *document) crashing() (Health, bool) {
	var names []string
	reasons := map[string]string{}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		statuses, _ := d.status[list].([]any)
		for _, entry := range statuses {
			fields, _ := entry.(map[string]any)
			container := &document{content: fields}
			if reason := container.text("state", "waiting", "reason"); slices.Contains(crashReasons, reason) {
				name := container.text("name")
				names, reasons[name] = append(names, name), reason
			}
		}
	}
	if len(names) == 0 {
		return Health{}, false
	}
	slices.Sort(names)
	return Health{StateFailed, reasons[names[0]], "container " + names[0] + " is in " + reasons[names[0]]}, true
}

// ofService judges a Service. To kstatus, one without the address of its load balancer is current.
func ofService(d *document) Health {
	ingress, _ := d.field("status", "loadBalancer", "ingress").([]any)
	if s := byKstatus(d); s.State != StateReady || d.text("spec", "type") != "LoadBalancer" || len(ingress) > 0 {
		return s
	}
	return Health{StateProgressing, "NoAddress", "its load balancer has no address"}
}

func ofAttachment(d *document) Health {
	attached, _ := d.field("status", "attached").(bool)
	switch problem := d.text("status", "attachError", "message"); {
	case problem != "":
		return Health{StateFailed, "AttachError", problem}
	case attached:
		return Health{State: StateReady}
	}
	return Health{StateProgressing, "NotAttached", "it is not attached"}
}

func ofNode(d *document) Health {
	if c, ok := d.first([]string{"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}, "True"); ok {
		return c.says(StateFailed)
	}
	if s, ok := byConditions(d); ok {
		return s
	}
	return Health{StateProgressing, ReasonNoStatus, "its kubelet has not reported"}
}

// ofClaim judges a PersistentVolumeClaim. One that has lost its volume does not get it back.
func ofClaim(d *document) Health {
	if d.text("status", "phase") == "Lost" {
		return Health{StateFailed, "Lost", "it has lost its volume"}
	}
	return byKstatus(d)
}

// ofVolume judges a PersistentVolume. One that is released can't be bound again.
func ofVolume(d *document) Health {
	if d.text("status", "phase") == "Released" {
		return Health{StateFailed, "Released", "it is released by its claim, and can't be bound again"}
	}
	return ofPhase(d)
}

func ofPhase(d *document) Health {
	if s, ok := byPhase(d); ok {
		return s
	}
	return Health{StateProgressing, ReasonNoStatus, "it has no phase yet"}
}

func ofAutoscaler(d *document) Health {
	c, ok := d.first([]string{"AbleToScale", "ScalingActive"}, "False")
	if ok && c.reason != "ScalingDisabled" { // which is what its user wants: no replicas
		return c.says(StateProgressing)
	}
	return Health{State: StateReady}
}

func ofSigningRequest(d *document) Health {
	if c, ok := d.first([]string{"Denied", "Failed"}, "True"); ok {
		return c.says(StateFailed)
	}
	if d.text("status", "certificate") != "" {
		return Health{State: StateReady}
	}
	return Health{StateProgressing, "NotIssued", "its certificate is not issued yet"}
}

func ofResourceClaim(d *document) Health {
	if d.field("status", "allocation") == nil {
		return Health{StateProgressing, "NotAllocated", "no device is allocated to it"}
	}
	return Health{State: StateReady}
}

// ofApplication judges an Application of Argo CD: its conditions have no status, and its health is
// that of what was applied, not of what is declared.
func ofApplication(d *document) Health {
	if c, ok := d.least(func(c cond) bool { return strings.HasSuffix(c.kind, "Error") }); ok {
		return Health{StateFailed, c.kind, c.text()}
	}
	switch phase := d.text("status", "operationState", "phase"); phase {
	case "Failed", "Error":
		return Health{StateFailed, "Sync" + phase, cmp.Or(d.text("status", "operationState", "message"), "its last synchronization has failed")}
	case "Running", "Terminating":
		return Health{StateProgressing, "Sync" + phase, "it is being synchronized"}
	}
	if s := ofPhase(d); s.State != StateReady || d.text("status", "sync", "status") == "Synced" {
		return s
	}
	return Health{StateProgressing, "OutOfSync", "what is applied is not what is declared"}
}

// ofCertificate judges a Certificate of cert-manager. One whose issuance has failed is tried again
// only after an hour, or more; while it has a valid one all the same, it is ready.
func ofCertificate(d *document) Health {
	if c, ok := d.first([]string{"Issuing"}, "False"); ok && c.reason == "Failed" {
		if _, ready := d.first([]string{"Ready"}, "True"); !ready {
			return c.says(StateFailed)
		}
	}
	if s, ok := byConditions(d); ok {
		return s
	}
	return Health{StateProgressing, ReasonNoStatus, "its controller has not reported"}
}

// ofMachine judges a VirtualMachine of KubeVirt. One that is to be off is ready when it is.
func ofMachine(d *document) Health {
	running, _ := d.field("spec", "running").(bool)
	off := d.text("spec", "runStrategy") == "Halted" || d.field("spec", "running") != nil && !running
	if off && d.text("status", "printableStatus") == "Stopped" {
		return Health{State: StateReady}
	}
	if s, ok := byConditions(d); ok {
		return s
	}
	return Health{StateProgressing, ReasonNoStatus, "its controller has not reported"}
}
