// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An Outcome is what becomes of a Pod.
type Outcome string

// The outcomes of Pods. Without one, a Pod of a Job succeeds and every other Pod keeps running.
const (
	Pending Outcome = "pending" // is never scheduled
	Unready Outcome = "unready" // runs, but never becomes ready
	Runs    Outcome = "runs"    // keeps running, and is ready
	Succeed Outcome = "succeed" // ends with exit code 0
	Fail    Outcome = "fail"    // ends with exit code 1; crashes again and again if it is always restarted
)

// OutcomeAnnotation is the annotation of a Pod, or of the template of one, or of a Job, that says
// what becomes of it.
const OutcomeAnnotation = "sim.ctrlkit.dev/outcome"

// The annotations of the Nodes of package controlplane, which work in memory as they do there. They
// are for Pods whose restart policy is not Always.
const (
	RunsForAnnotation  = "controlplane.ctrlkit.dev/runs-for"  // how long a Pod runs until it ends: "10s"
	ExitCodeAnnotation = "controlplane.ctrlkit.dev/exit-code" // of the containers of a Pod that ends
)

// How long Pods take, in virtual time.
const (
	podStarts = time.Second // from its creation until its containers run
	podRuns   = time.Second // until one that ends has ended, unless [RunsForAnnotation] says how long
	podEnds   = time.Second // from its deletion, unless the grace period is shorter
)

// Pod returns the player of Pods: scheduler and kubelet. A Pod is bound to a node, runs and becomes
// ready a second after its creation, and is removed a second after its deletion. A Pod of a Job
// succeeds another second later.
//
// decide says what becomes of a Pod. It may be nil, and may return "" for what
// [OutcomeAnnotation] says, or else [RunsForAnnotation] and [ExitCodeAnnotation].
func Pod(decide func(*corev1.Pod) Outcome) Player {
	return New(func(s *Stage, pod *corev1.Pod) error {
		outcome := Outcome("")
		if decide != nil {
			outcome = decide(pod.DeepCopy())
		}
		return playPod(s, pod, cmp.Or(outcome, Outcome(pod.Annotations[OutcomeAnnotation]), usualOutcome(pod)))
	}).Watching(&corev1.PersistentVolumeClaim{}, podsOfClaim)
}

func usualOutcome(pod *corev1.Pod) Outcome {
	owner := metav1.GetControllerOf(pod)
	limited := pod.Annotations[RunsForAnnotation] != "" && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
	switch {
	case !limited && (owner == nil || owner.Kind != "Job"):
		return Runs
	case exitCode(pod) != 0:
		return Fail
	}
	return Succeed
}

// exitCode returns what [ExitCodeAnnotation] says; 0 if it does not say a number.
func exitCode(pod *corev1.Pod) int32 {
	code, err := strconv.ParseInt(pod.Annotations[ExitCodeAnnotation], 10, 32)
	if err != nil {
		return 0
	}
	return int32(code)
}

// runTime returns how long a Pod that ends runs.
func runTime(pod *corev1.Pod) time.Duration {
	if d, err := time.ParseDuration(pod.Annotations[RunsForAnnotation]); err == nil {
		return d
	}
	return podRuns
}

func playPod(s *Stage, pod *corev1.Pod, outcome Outcome) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return endPod(s, pod)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return nil
	case len(pod.Spec.SchedulingGates) > 0:
		setPodCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated)
		return s.UpdateStatus(pod)
	case pod.Spec.NodeName == "" && (outcome == Pending || !hasClaims(s, pod)):
		setPodCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)
		return s.UpdateStatus(pod)
	case pod.Spec.NodeName == "":
		return s.bind(pod, nodeFor(s, pod)) // which calls the player again
	case outcome == Pending:
		return nil
	}
	if !s.until(pod.CreationTimestamp.Add(podStarts)) {
		return nil
	}
	runPod(s, pod, outcome)
	if ends(pod, outcome) && s.until(pod.Status.StartTime.Add(runTime(pod))) {
		finishPod(pod, outcome)
	}
	return s.UpdateStatus(pod)
}

// ends reports whether a Pod comes to an end: one that is always restarted does not.
func ends(pod *corev1.Pod, outcome Outcome) bool {
	return (outcome == Succeed || outcome == Fail) && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
}

// endPod removes a Pod that is being deleted.
func endPod(s *Stage, pod *corev1.Pod) error {
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	if grace == 0 {
		return nil // its containers have ended; finalizers may still hold it
	}
	if !s.until(pod.DeletionTimestamp.Add(-grace).Add(min(grace, podEnds))) {
		return nil
	}
	return s.Delete(pod, client.GracePeriodSeconds(0))
}

// nodeNames returns the names of the nodes for Pods: those of the Nodes that are in the cluster, or
// of one without an object.
func nodeNames(s *Stage) []string {
	var names []string
	for _, node := range List[*corev1.Node](s, "") {
		if !node.Spec.Unschedulable && node.DeletionTimestamp == nil {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		names = []string{"node-1"}
	}
	return names
}

// nodeFor returns the node of a Pod. It depends only on what the Pod is called, without what the
// server has generated of it, so that it is the same in each run.
func nodeFor(s *Stage, pod *corev1.Pod) string {
	names := nodeNames(s)
	return names[hashOf(pod.Namespace+"/"+cmp.Or(pod.GenerateName, pod.Name))%uint32(len(names))]
}

func hashOf(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) //nolint:errcheck // writing to a hash never fails
	return h.Sum32()
}

// runPod makes the containers of a Pod run.
func runPod(s *Stage, pod *corev1.Pod, outcome Outcome) {
	status := &pod.Status
	now := metav1.Now()
	if status.StartTime == nil {
		status.StartTime = &now
		status.Phase = corev1.PodRunning
		status.HostIP = "10.0.0.1"
		status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
		status.PodIP = podIP(s, pod)
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	crashes := outcome == Fail && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
	ready := outcome != Unready && !crashes
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *status.StartTime}}
	if crashes {
		state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	status.ContainerStatuses = containerStatuses(pod.Spec.Containers, ready, state)
	status.InitContainerStatuses = initStatuses(pod.Spec.InitContainers, *status.StartTime)
	setPodCondition(pod, corev1.PodScheduled, corev1.ConditionTrue, "")
	setPodCondition(pod, corev1.PodReadyToStartContainers, corev1.ConditionTrue, "")
	setPodCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, "")
	setReady(pod, ready)
}

// setReady sets the conditions that say whether a Pod is ready. Its readiness gates count too.
func setReady(pod *corev1.Pod, ready bool) {
	status, reason := corev1.ConditionTrue, ""
	if !ready {
		status, reason = corev1.ConditionFalse, "ContainersNotReady"
	}
	setPodCondition(pod, corev1.ContainersReady, status, reason)
	for _, gate := range pod.Spec.ReadinessGates {
		if ready && !isPodConditionTrue(pod, gate.ConditionType) {
			status, reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
		}
	}
	setPodCondition(pod, corev1.PodReady, status, reason)
}

// finishPod ends the containers of a Pod.
func finishPod(pod *corev1.Pod, outcome Outcome) {
	now := metav1.Now()
	ended := &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: *pod.Status.StartTime, FinishedAt: now}
	pod.Status.Phase = corev1.PodSucceeded
	if outcome == Fail {
		ended.Reason, ended.ExitCode = "Error", cmp.Or(exitCode(pod), 1)
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = containerStatuses(pod.Spec.Containers, false, corev1.ContainerState{Terminated: ended})
	reason := "PodCompleted"
	if outcome == Fail {
		reason = "PodFailed"
	}
	setPodCondition(pod, corev1.ContainersReady, corev1.ConditionFalse, reason)
	setPodCondition(pod, corev1.PodReady, corev1.ConditionFalse, reason)
}

func containerStatuses(containers []corev1.Container, ready bool, state corev1.ContainerState) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for _, c := range containers {
		started := state.Running != nil
		list = append(list, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: ready, Started: &started, State: state})
	}
	return list
}

func initStatuses(containers []corev1.Container, at metav1.Time) []corev1.ContainerStatus {
	var list []corev1.ContainerStatus
	for _, c := range containers {
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at}}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
		}
		list = append(list, containerStatuses([]corev1.Container{c}, true, state)...)
	}
	return list
}

// podIP returns an address that no other Pod has. All addresses are of the same length, so that none
// is the beginning of another one in a text.
func podIP(s *Stage, pod *corev1.Pod) string {
	taken := map[string]bool{}
	for _, other := range s.world.Objects(&corev1.Pod{}, "") {
		taken[other.(*corev1.Pod).Status.PodIP] = true
	}
	const octets = 156 // 100 to 255
	for n := hashOf(pod.Namespace + "/" + pod.Name); ; n++ {
		ip := fmt.Sprintf("10.244.%d.%d", 100+n/octets%octets, 100+n%octets)
		if !taken[ip] {
			return ip
		}
	}
}

// hasClaims reports whether the PersistentVolumeClaims of a Pod are there. As the scheduler does, it
// does not count those that are being deleted.
func hasClaims(s *Stage, pod *corev1.Pod) bool {
	for _, name := range claimsOf(pod) {
		claim := s.world.Object(&corev1.PersistentVolumeClaim{}, client.ObjectKey{Namespace: pod.Namespace, Name: name})
		if claim == nil || claim.GetDeletionTimestamp() != nil {
			return false
		}
	}
	return true
}

func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// podsOfClaim returns the Pods that use a PersistentVolumeClaim.
func podsOfClaim(s *Stage, claim client.Object) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, obj := range s.world.Objects(&corev1.Pod{}, claim.GetNamespace()) {
		if slices.Contains(claimsOf(obj.(*corev1.Pod)), claim.GetName()) {
			keys = append(keys, client.ObjectKeyFromObject(obj))
		}
	}
	return keys
}

func setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			if c.Status != status {
				c.LastTransitionTime = metav1.Now()
			}
			c.Status, c.Reason = status, reason
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.Now()})
}

func isPodConditionTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}
