// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
)

// strategy is what the real API server calls to create and update the objects of a kind.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// served is a kind with its strategies.
type served struct {
	resource string
	main     strategy
	status   rest.RESTUpdateStrategy // nil if it has no status subresource
}

// kinds are the kinds that are probed, by group/Kind.
var kinds = map[string]served{
	"/ConfigMap":                            {"configmaps", configmap.Strategy, nil},
	"/Endpoints":                            {"endpoints", endpoint.Strategy, nil},
	"/LimitRange":                           {"limitranges", limitrange.Strategy, nil},
	"/Namespace":                            {"namespaces", namespace.Strategy, namespace.StatusStrategy},
	"/PersistentVolume":                     {"persistentvolumes", persistentvolume.Strategy, persistentvolume.StatusStrategy},
	"/PersistentVolumeClaim":                {"persistentvolumeclaims", persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy},
	"/Pod":                                  {"pods", pod.Strategy, pod.StatusStrategy},
	"/ResourceQuota":                        {"resourcequotas", resourcequota.Strategy, resourcequota.StatusStrategy},
	"/Secret":                               {"secrets", secret.Strategy, nil},
	"/Service":                              {"services", service.Strategy, service.StatusStrategy},
	"/ServiceAccount":                       {"serviceaccounts", serviceaccount.Strategy, nil},
	"apps/ControllerRevision":               {"controllerrevisions", controllerrevision.Strategy, nil},
	"apps/DaemonSet":                        {"daemonsets", daemonset.Strategy, daemonset.StatusStrategy},
	"apps/Deployment":                       {"deployments", deployment.Strategy, deployment.StatusStrategy},
	"apps/ReplicaSet":                       {"replicasets", replicaset.Strategy, replicaset.StatusStrategy},
	"apps/StatefulSet":                      {"statefulsets", statefulset.Strategy, statefulset.StatusStrategy},
	"autoscaling/HorizontalPodAutoscaler":   {"horizontalpodautoscalers", horizontalpodautoscaler.Strategy, horizontalpodautoscaler.StatusStrategy},
	"batch/CronJob":                         {"cronjobs", cronjob.Strategy, cronjob.StatusStrategy},
	"batch/Job":                             {"jobs", job.Strategy, job.StatusStrategy},
	"coordination.k8s.io/Lease":             {"leases", lease.Strategy, nil},
	"discovery.k8s.io/EndpointSlice":        {"endpointslices", endpointslice.Strategy, nil},
	"networking.k8s.io/Ingress":             {"ingresses", ingress.Strategy, ingress.StatusStrategy},
	"networking.k8s.io/NetworkPolicy":       {"networkpolicies", networkpolicy.Strategy, nil},
	"policy/PodDisruptionBudget":            {"poddisruptionbudgets", poddisruptionbudget.Strategy, poddisruptionbudget.StatusStrategy},
	"rbac.authorization.k8s.io/ClusterRole": {"clusterroles", clusterrole.Strategy, nil},
	"rbac.authorization.k8s.io/ClusterRoleBinding": {"clusterrolebindings", clusterrolebinding.Strategy, nil},
	"rbac.authorization.k8s.io/Role":               {"roles", role.Strategy, nil},
	"rbac.authorization.k8s.io/RoleBinding":        {"rolebindings", rolebinding.Strategy, nil},
	"scheduling.k8s.io/PriorityClass":              {"priorityclasses", priorityclass.Strategy, nil},
	"storage.k8s.io/StorageClass":                  {"storageclasses", storageclass.Strategy, nil},
}
