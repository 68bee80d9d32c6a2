// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// Kind is a watched kind.
type Kind struct {
	schema.GroupVersionKind
	Plural string
	Short  []string
	// Operators marks the kinds at the top of the tree.
	Operators bool
	// Sparse kinds are watched by their metadata only: they have no state to show, and some hold
	// secrets or much data.
	Sparse  bool
	Columns []Column
}

// answersTo reports whether name is the kind, plural or short name of k, in any case, with or
// without the group.
func (k Kind) answersTo(name string) bool {
	name = strings.ToLower(name)
	if bare, group, qualified := strings.Cut(name, "."); qualified {
		if group != k.Group {
			return false
		}
		name = bare
	}
	if name == strings.ToLower(k.Kind) || name == k.Plural {
		return true
	}
	for _, short := range k.Short {
		if name == short {
			return true
		}
	}
	return false
}

// builtinKinds returns the built-in kinds that operators usually own.
func builtinKinds() []Kind {
	kind := func(group, version, name, plural string, short ...string) Kind {
		return Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name}, Plural: plural, Short: short}
	}
	sparse := func(k Kind) Kind {
		k.Sparse = true
		return k
	}
	return []Kind{
		kind("", "v1", "Pod", "pods", "po"),
		kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc"),
		sparse(kind("", "v1", "Service", "services", "svc")),
		sparse(kind("", "v1", "ConfigMap", "configmaps", "cm")),
		sparse(kind("", "v1", "Secret", "secrets")),
		sparse(kind("", "v1", "ServiceAccount", "serviceaccounts", "sa")),
		kind("apps", "v1", "Deployment", "deployments", "deploy"),
		kind("apps", "v1", "ReplicaSet", "replicasets", "rs"),
		kind("apps", "v1", "StatefulSet", "statefulsets", "sts"),
		kind("apps", "v1", "DaemonSet", "daemonsets", "ds"),
		kind("batch", "v1", "Job", "jobs"),
		kind("batch", "v1", "CronJob", "cronjobs", "cj"),
		sparse(kind("networking.k8s.io", "v1", "Ingress", "ingresses", "ing")),
		sparse(kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol")),
		sparse(kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb")),
		sparse(kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa")),
		sparse(kind("rbac.authorization.k8s.io", "v1", "Role", "roles")),
		sparse(kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")),
		// What is cluster-scoped is shown if the annotation of a set names its owner.
		sparse(kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles")),
		sparse(kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings")),
		sparse(kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc")),
		kind("", "v1", "Namespace", "namespaces", "ns"),
	}
}

// definedKind returns the kind that crd defines, in its storage version, as one of the operator's.
func definedKind(crd *apiextensionsv1.CustomResourceDefinition) Kind {
	k := Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind},
		Plural:           crd.Spec.Names.Plural,
		Short:            crd.Spec.Names.ShortNames,
		Operators:        true,
	}
	for _, version := range crd.Spec.Versions {
		if !version.Served || (k.Version != "" && !version.Storage) {
			continue
		}
		k.Version = version.Name
		k.Columns = nil
		for _, column := range version.AdditionalPrinterColumns {
			if column.Priority == 0 {
				k.Columns = append(k.Columns, Column{Name: column.Name, Path: column.JSONPath})
			}
		}
	}
	return k
}

// kindsNamed returns those of kinds that name refers to. If the operator defines a kind of this
// name, the built-in one must be named with its group.
func kindsNamed(name string, kinds []Kind) []Kind {
	var own, others []Kind
	for _, k := range kinds {
		switch {
		case !k.answersTo(name):
		case k.Operators:
			own = append(own, k)
		default:
			others = append(others, k)
		}
	}
	if len(own) > 0 {
		return own
	}
	return others
}

// nearKind returns the kind whose name is most similar to name, or "" if none is similar.
func nearKind(name string, kinds []Kind) string {
	var names []string
	byName := map[string]string{}
	for _, k := range kinds {
		names = append(names, k.Kind, k.Plural)
		byName[k.Kind], byName[k.Plural] = k.Kind, k.Kind
	}
	near, _ := printable.Near(name, names)
	return byName[near]
}
