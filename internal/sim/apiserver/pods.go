// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podActions are the subresources of Pods that clients create to have something done.
type podActions struct{ g *registry }

// isPodAction reports whether a subresource of a kind is one of podActions.
func (k *kind) isPodAction(subresource string) bool {
	return k.storage == podsStorage && (subresource == "binding" || subresource == "eviction")
}

// create answers the creation of a subresource.
func (p podActions) create(k *kind, r *Request) *Response {
	pod := p.g.store.table(k).objects[key{r.Namespace, r.Name}]
	do := p.bind
	if r.Subresource == "eviction" {
		do = p.evict
	}
	if failure := do(&writeContext{request: r, kind: k}, pod); failure != nil {
		return failure.response()
	}
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // plain fields
	}
	return respond(http.StatusCreated, append(body, '\n'))
}

// bind gives a Pod the Node that a Binding names. As upstream, it updates no managed fields and
// no generation.
func (p podActions) bind(w *writeContext, pod *version) *failure {
	r := w.request
	binding := &corev1.Binding{}
	if err := json.Unmarshal(r.Body, binding); err != nil {
		return fail(apierrors.NewBadRequest(err.Error()))
	}
	if failure := checkBinding(r, binding); failure != nil {
		return failure
	}
	if pod == nil {
		return fail(apierrors.NewNotFound(podsStorage, r.Name))
	}
	u := pod.unstructured()
	node, _, _ := unstructured.NestedString(pod.content, "spec", "nodeName")
	gates, _, _ := unstructured.NestedSlice(pod.content, "spec", "schedulingGates")
	refuse := func(format string, args ...any) *failure {
		gr := schema.GroupResource{Resource: "pods/binding"}
		return fail(apierrors.NewConflict(gr, r.Name, fmt.Errorf(format, args...)))
	}
	switch {
	case binding.UID != "" && binding.UID != pod.uid:
		return w.kind.wrongUID(r, binding.UID, pod.uid)
	case binding.ResourceVersion != "" && binding.ResourceVersion != u.GetResourceVersion():
		return conflict(w.kind, r.Name)
	case u.GetDeletionTimestamp() != nil:
		return refuse("pod %s is being deleted, cannot be assigned to a host", r.Name)
	case node != "":
		return refuse("pod %v is already assigned to node %q", r.Name, node)
	case len(gates) > 0:
		return refuse("pod %v has non-empty .spec.schedulingGates", r.Name)
	}
	if r.DryRun {
		return nil
	}
	bound := u.DeepCopy()
	spec, _ := bound.Object["spec"].(map[string]any)
	spec["nodeName"] = binding.Target.Name
	bound.SetAnnotations(merged(bound.GetAnnotations(), binding.Annotations))
	bound.SetLabels(merged(bound.GetLabels(), binding.Labels))
	unstructured.RemoveNestedField(bound.Object, "status", "nominatedNodeName")
	p.setCondition(bound, map[string]any{"type": string(corev1.PodScheduled), "status": "True"})
	p.g.store.put(w, pod, bound.Object)
	return nil
}

// checkBinding checks a Binding, which upstream does before it reads the Pod.
func checkBinding(r *Request, binding *corev1.Binding) *failure {
	if binding.Name != r.Name {
		return fail(apierrors.NewBadRequest("name in URL does not match name in Binding object"))
	}
	var errs field.ErrorList
	if kind := binding.Target.Kind; kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(field.NewPath("target", "kind"), kind, []string{"Node", "<empty>"}))
	}
	if binding.Target.Name == "" {
		errs = append(errs, field.Required(field.NewPath("target", "name"), ""))
	}
	if len(errs) > 0 {
		return fail(errs.ToAggregate()) // as upstream: 500
	}
	return nil
}

// merged returns a map with the entries of more added.
func merged(m, more map[string]string) map[string]string {
	if len(more) == 0 {
		return m
	}
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, more)
	return m
}

// setCondition sets a condition of a Pod, whose time changes with its status.
func (p podActions) setCondition(pod *unstructured.Unstructured, condition map[string]any) {
	status, _ := pod.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		pod.Object["status"] = status
	}
	condition["lastProbeTime"] = nil
	condition["lastTransitionTime"] = p.g.now().UTC().Format("2006-01-02T15:04:05Z")
	list, _ := status["conditions"].([]any)
	for i := range list {
		old, _ := list[i].(map[string]any)
		if old["type"] != condition["type"] {
			continue
		}
		if old["status"] == condition["status"] {
			condition["lastTransitionTime"] = old["lastTransitionTime"]
		}
		list[i] = condition
		return
	}
	status["conditions"] = append(list, condition)
}

// evict deletes a Pod, unless its PodDisruptionBudget does not allow it.
func (p podActions) evict(w *writeContext, pod *version) *failure {
	r := w.request
	eviction := &policyv1.Eviction{}
	if err := json.Unmarshal(r.Body, eviction); err != nil {
		return fail(apierrors.NewBadRequest(err.Error()))
	}
	if eviction.Name != r.Name {
		return fail(apierrors.NewBadRequest("name in URL does not match name in Eviction object"))
	}
	if pod == nil {
		return fail(apierrors.NewNotFound(podsStorage, r.Name))
	}
	options := eviction.DeleteOptions
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	dry := *r
	dry.DryRun = r.DryRun || len(options.DryRun) > 0
	w = &writeContext{request: &dry, kind: w.kind}
	if failure := checkPreconditions(w.kind, pod, options.Preconditions); failure != nil {
		return failure
	}
	if failure := p.checkBudget(w, pod); failure != nil {
		return failure
	}
	if !dry.DryRun {
		marked := pod.unstructured().DeepCopy()
		p.setCondition(marked, map[string]any{
			"type": string(corev1.DisruptionTarget), "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
		})
		pod = p.g.store.put(w, pod, marked.Object)
		options = options.DeepCopy()
		if options.Preconditions != nil {
			options.Preconditions.ResourceVersion = nil // it was checked before the condition was set
		}
	}
	if response := p.g.deleteObject(w, pod, options); response.Code >= 400 {
		return &failure{statusError(response).(*apierrors.StatusError).ErrStatus}
	}
	return nil
}

// checkBudget counts an eviction in the status of the Pod's PodDisruptionBudget, or refuses it. A
// Pod that does not run yet, or no longer, needs none.
func (p podActions) checkBudget(w *writeContext, pod *version) *failure {
	phase, _, _ := unstructured.NestedString(pod.content, "status", "phase")
	if phase != string(corev1.PodRunning) && phase != "" && phase != string(corev1.PodUnknown) || pod.unstructured().GetDeletionTimestamp() != nil {
		return nil
	}
	found, failure := p.budgetOf(pod)
	if found == nil || failure != nil {
		return failure
	}
	budget := &policyv1.PodDisruptionBudget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.content, budget); err != nil {
		return fail(apierrors.NewInternalError(err))
	}
	status := budget.Status
	ready := isReady(pod)
	always := budget.Spec.UnhealthyPodEvictionPolicy != nil && *budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	text := fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", budget.Name)
	after := 0
	switch {
	case !ready && (always || status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0):
		return nil
	case status.ObservedGeneration < budget.Generation:
		text, after = fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name), 10
	case status.DisruptionsAllowed > 0:
		p.countDisruption(w, found, pod.name, status.DisruptionsAllowed-1)
		return nil
	case status.CurrentHealthy <= status.DesiredHealthy:
		text = fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, status.DesiredHealthy, status.CurrentHealthy)
	}
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", after)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: text})
	return fail(err)
}

var budgetsStorage = schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}

// budgetOf returns the PodDisruptionBudget that selects a Pod, or nil.
func (p podActions) budgetOf(pod *version) (*version, *failure) {
	t := p.g.store.tables[budgetsStorage]
	if t == nil {
		return nil, nil
	}
	var found *version
	for _, v := range t.sorted(pod.namespace) {
		selector := &metav1.LabelSelector{}
		content, ok, _ := unstructured.NestedMap(v.content, "spec", "selector")
		if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector) != nil {
			continue
		}
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || !s.Matches(labels.Set(pod.unstructured().GetLabels())) {
			continue
		}
		if found != nil {
			return nil, &failure{metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
				Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
			}}
		}
		found = v
	}
	return found, nil
}

// countDisruption records in a PodDisruptionBudget that a Pod is about to be evicted.
func (p podActions) countDisruption(w *writeContext, budget *version, pod string, allowed int32) {
	if w.request.DryRun {
		return
	}
	u := budget.unstructured().DeepCopy()
	status := u.Object["status"].(map[string]any) // it allows a disruption
	status["disruptionsAllowed"] = int64(allowed)
	disrupted, _ := status["disruptedPods"].(map[string]any)
	if disrupted == nil {
		disrupted = map[string]any{}
	}
	disrupted[pod] = p.g.now().UTC().Format("2006-01-02T15:04:05Z")
	status["disruptedPods"] = disrupted
	k := p.g.store.tables[budgetsStorage].kind
	r := &Request{Actor: w.request.Actor, Verb: "update", Resource: k.gvr, Namespace: budget.namespace, Name: budget.name, Subresource: "status"}
	p.g.store.put(&writeContext{request: r, kind: k}, budget, u.Object)
}

func isReady(pod *version) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.content, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == string(corev1.PodReady) {
			return c["status"] == "True"
		}
	}
	return false
}
