// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const rbacGroup = "rbac.authorization.k8s.io"

func otherColumns() map[schema.GroupKind]kindColumns {
	const bindings = "Name Role Age Users* Groups* ServiceAccounts*"
	created := func(obj metav1.Object) []any { return []any{obj.GetName(), createdAt(obj)} }
	return map[schema.GroupKind]kindColumns{
		{Group: "networking.k8s.io", Kind: "Ingress"}:                     newColumns("Name Class Hosts Address Ports Age", ingressCells),
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           autoscalerColumns(),
		{Group: rbacGroup, Kind: "Role"}:                                  newColumns("Name Created_At", created),
		{Group: rbacGroup, Kind: "ClusterRole"}:                           newColumns("Name Created_At", created),
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: newColumns("Name Created_At", created),
		{Group: rbacGroup, Kind: "RoleBinding"}: newColumns(bindings, func(b *rbacv1.RoleBinding) []any {
			return bindingCells(b, b.RoleRef, b.Subjects)
		}),
		{Group: rbacGroup, Kind: "ClusterRoleBinding"}: newColumns(bindings, func(b *rbacv1.ClusterRoleBinding) []any {
			return bindingCells(b, b.RoleRef, b.Subjects)
		}),
		{Group: "coordination.k8s.io", Kind: "Lease"}: newColumns("Name Holder Age", func(l *coordinationv1.Lease) []any {
			return []any{l.Name, ptr.Deref(l.Spec.HolderIdentity, ""), age(l)}
		}),
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: newColumns("Name Pod-Selector Age", func(p *networkingv1.NetworkPolicy) []any {
			return []any{p.Name, selectorText(&p.Spec.PodSelector), age(p)}
		}),
		{Group: "policy", Kind: "PodDisruptionBudget"}: newColumns("Name Min_Available Max_Unavailable Allowed_Disruptions# Age", func(b *policyv1.PodDisruptionBudget) []any {
			return []any{b.Name, orNA(b.Spec.MinAvailable), orNA(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed), age(b)}
		}),
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: newColumns("Name Value# Global-Default? Age PreemptionPolicy", func(c *schedulingv1.PriorityClass) []any {
			return []any{c.Name, int64(c.Value), c.GlobalDefault, age(c), string(ptr.Deref(c.PreemptionPolicy, ""))}
		}),
	}
}

func createdAt(obj metav1.Object) string {
	return obj.GetCreationTimestamp().UTC().Format(time.RFC3339)
}

func orNA(value *intstr.IntOrString) string {
	if value == nil {
		return "N/A"
	}
	return value.String()
}

func bindingCells(obj metav1.Object, role rbacv1.RoleRef, subjects []rbacv1.Subject) []any {
	names := map[string][]string{}
	for _, s := range subjects {
		name := s.Name
		if s.Kind == rbacv1.ServiceAccountKind {
			name = s.Namespace + "/" + s.Name
		}
		names[s.Kind] = append(names[s.Kind], name)
	}
	join := func(kind string) string { return strings.Join(names[kind], ", ") }
	return []any{obj.GetName(), role.Kind + "/" + role.Name, age(obj), join(rbacv1.UserKind), join(rbacv1.GroupKind), join(rbacv1.ServiceAccountKind)}
}

func ingressCells(i *networkingv1.Ingress) []any {
	var hosts, addresses []string
	for _, rule := range i.Spec.Rules {
		if rule.Host != "" && !slices.Contains(hosts, rule.Host) {
			hosts = append(hosts, rule.Host)
		}
	}
	if len(hosts) == 0 {
		hosts = []string{"*"}
	}
	for _, at := range i.Status.LoadBalancer.Ingress {
		if at.IP != "" {
			addresses = append(addresses, at.IP)
		} else {
			addresses = append(addresses, at.Hostname)
		}
	}
	ports := "80"
	if len(i.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	return []any{i.Name, ptr.Deref(i.Spec.IngressClassName, "<none>"), strings.Join(hosts, ","), strings.Join(addresses, ","), ports, age(i)}
}

func autoscalerColumns() kindColumns {
	c := newColumns("Name Reference Targets MinPods MaxPods Replicas Age", autoscalerCells)
	c.version = "v2"
	return c
}

// autoscalerCells shows every metric as unknown: nothing measures them.
func autoscalerCells(h *autoscalingv2.HorizontalPodAutoscaler) []any {
	ref := h.Spec.ScaleTargetRef
	least := "<unset>"
	if h.Spec.MinReplicas != nil {
		least = fmt.Sprint(*h.Spec.MinReplicas)
	}
	var targets []string
	for _, m := range h.Spec.Metrics {
		target := "<unknown>"
		if m.Resource != nil && m.Resource.Target.AverageUtilization != nil {
			target = fmt.Sprintf("%s: <unknown>/%d%%", m.Resource.Name, *m.Resource.Target.AverageUtilization)
		}
		targets = append(targets, target)
	}
	return []any{h.Name, ref.Kind + "/" + ref.Name, orNone(strings.Join(targets, ", ")), least, int64(h.Spec.MaxReplicas), int64(h.Status.CurrentReplicas), age(h)}
}
