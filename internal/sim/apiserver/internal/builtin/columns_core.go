// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func coreColumns() map[schema.GroupKind]kindColumns {
	return map[schema.GroupKind]kindColumns{
		{Kind: "Service"}:               newColumns("Name Type Cluster-IP External-IP Port(s) Age Selector*", serviceCells),
		{Kind: "PersistentVolumeClaim"}: newColumns("Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age VolumeMode*", claimCells),
		{Kind: "PersistentVolume"}: newColumns(
			"Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass VolumeAttributesClass Reason Age VolumeMode*", volumeCells),
		{Kind: "Node"}: newColumns(
			"Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*", nodeCells),
		{Kind: "Event"}: newColumns("Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*", eventCells),
		{Kind: "Namespace"}: newColumns("Name Status Age", func(n *corev1.Namespace) []any {
			return []any{n.Name, string(n.Status.Phase), age(n)}
		}),
		{Kind: "ConfigMap"}: newColumns("Name Data Age", func(c *corev1.ConfigMap) []any {
			return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), age(c)}
		}),
		{Kind: "Secret"}: newColumns("Name Type Data Age", func(s *corev1.Secret) []any {
			return []any{s.Name, string(s.Type), int64(len(s.Data)), age(s)}
		}),
		{Kind: "ServiceAccount"}: newColumns("Name Age", func(s *corev1.ServiceAccount) []any { return []any{s.Name, age(s)} }),
	}
}

func serviceCells(s *corev1.Service) []any {
	var external, ports []string
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		external = append(external, cmp.Or(ingress.IP, ingress.Hostname))
	}
	external = append(external, s.Spec.ExternalIPs...)
	out := orNone(strings.Join(external, ","))
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		out = s.Spec.ExternalName
	case s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(external) == 0:
		out = "<pending>"
	}
	for _, p := range s.Spec.Ports {
		text := strconv.Itoa(int(p.Port))
		if p.NodePort > 0 {
			text += ":" + strconv.Itoa(int(p.NodePort))
		}
		ports = append(ports, text+"/"+string(p.Protocol))
	}
	return []any{s.Name, string(s.Spec.Type), orNone(s.Spec.ClusterIP), out, orNone(strings.Join(ports, ",")), age(s), labelsText(s.Spec.Selector)}
}

// accessText returns access modes as kubectl shows them: RWO, ROX, RWX, RWOP.
func accessText(modes []corev1.PersistentVolumeAccessMode) string {
	short := map[corev1.PersistentVolumeAccessMode]string{
		corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX", corev1.ReadWriteOncePod: "RWOP",
	}
	var texts []string
	for _, m := range modes {
		if text := short[m]; !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ",")
}

func claimCells(c *corev1.PersistentVolumeClaim) []any {
	status, capacity, access := string(c.Status.Phase), "", ""
	if c.DeletionTimestamp != nil {
		status = "Terminating"
	}
	if c.Spec.VolumeName != "" {
		size := c.Status.Capacity[corev1.ResourceStorage]
		capacity, access = size.String(), accessText(c.Status.AccessModes)
	}
	return []any{
		c.Name, status, c.Spec.VolumeName, capacity, access, ptr.Deref(c.Spec.StorageClassName, ""), orUnset(c.Spec.VolumeAttributesClassName), age(c),
		string(ptr.Deref(c.Spec.VolumeMode, "<unset>")),
	}
}

func volumeCells(v *corev1.PersistentVolume) []any {
	status, claim := string(v.Status.Phase), ""
	if v.DeletionTimestamp != nil {
		status = "Terminating"
	}
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	size := v.Spec.Capacity[corev1.ResourceStorage]
	return []any{
		v.Name, size.String(), accessText(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy), status, claim, v.Spec.StorageClassName,
		orUnset(v.Spec.VolumeAttributesClassName), v.Status.Reason, age(v), string(ptr.Deref(v.Spec.VolumeMode, "<unset>")),
	}
}

func nodeCells(n *corev1.Node) []any {
	status := "Unknown"
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			status = map[corev1.ConditionStatus]string{corev1.ConditionTrue: "Ready"}[condition.Status]
			status = cmp.Or(status, "NotReady")
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	var roles []string
	for label := range n.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	address := func(kind corev1.NodeAddressType) string {
		for _, a := range n.Status.Addresses {
			if a.Type == kind {
				return a.Address
			}
		}
		return "<none>"
	}
	info := n.Status.NodeInfo
	return []any{
		n.Name, status, orNone(strings.Join(roles, ",")), age(n), info.KubeletVersion, address(corev1.NodeInternalIP), address(corev1.NodeExternalIP),
		cmp.Or(info.OSImage, "<unknown>"), cmp.Or(info.KernelVersion, "<unknown>"), cmp.Or(info.ContainerRuntimeVersion, "<unknown>"),
	}
}

func eventCells(e *corev1.Event) []any {
	first, last, count := e.FirstTimestamp, e.LastTimestamp, e.Count
	if first.IsZero() {
		first = metav1.NewTime(e.EventTime.Time)
	}
	if last.IsZero() {
		last = first
	}
	if s := e.Series; s != nil {
		last, count = metav1.NewTime(s.LastObservedTime.Time), s.Count
	}
	source := cmp.Or(e.Source.Component, e.ReportingController)
	if host := cmp.Or(e.Source.Host, e.ReportingInstance); host != "" {
		source += ", " + host
	}
	return []any{
		since(&last, "<unknown>"), e.Type, e.Reason, fmt.Sprintf("%s/%s", strings.ToLower(e.InvolvedObject.Kind), e.InvolvedObject.Name),
		e.InvolvedObject.FieldPath, source, strings.TrimSpace(e.Message), since(&first, "<unknown>"), int64(max(count, 1)), e.Name,
	}
}
