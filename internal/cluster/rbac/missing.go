// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Missing describes the rule that a refused request lacks, and the marker from which controller-gen
// makes it.
func Missing(a authorizer.Attributes) string {
	if !a.IsResourceRequest() {
		return fmt.Sprintf("no rule allows %s to %s the path %s\n  add the rule: {nonResourceURLs: [%q], verbs: [%s]}", a.GetUser().GetName(), a.GetVerb(), a.GetPath(), a.GetPath(), a.GetVerb())
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	where, group := "in all namespaces", a.GetAPIGroup()
	if a.GetNamespace() != "" {
		where = "in namespace " + a.GetNamespace()
	} else if a.GetName() != "" {
		where = "of the cluster"
	}
	if group == "" {
		group = `""`
	}
	of := resource
	if a.GetAPIGroup() != "" {
		of += "." + a.GetAPIGroup()
	}
	return fmt.Sprintf("no rule allows %s to %s %s %s\n  add the rule: {apiGroups: [%q], resources: [%s], verbs: [%s]}\n  or the marker: // +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s",
		a.GetUser().GetName(), a.GetVerb(), of, where, a.GetAPIGroup(), resource, a.GetVerb(), group, resource, a.GetVerb())
}
