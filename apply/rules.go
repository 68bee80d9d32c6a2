// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

// Rules returns what the operator's role has to allow for a step of [Children], by the kinds that
// it declares. The client knows their resources. A test compares them with the role of the
// manifests; [Markers] has them as controller-gen wants them.
func Rules[T client.Object](c client.Client, children step.Step[T]) ([]rbacv1.PolicyRule, error) {
	with, ok := children.(interface{ declared() *settings })
	if !ok {
		return nil, fmt.Errorf("step %q is not made by apply.Children: only such steps declare kinds", children.Name())
	}
	var rules []rbacv1.PolicyRule
	for _, k := range with.declared().kinds {
		mapping, err := mappingOf(c, k.object)
		if err != nil {
			return nil, err
		}
		verbs := []string{"get", "list", "watch", "create", "patch", "delete"}
		if k.former && !k.owned && !k.tracked {
			verbs = []string{"get", "list", "watch", "delete"}
		}
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{mapping.Resource.Group}, Resources: []string{mapping.Resource.Resource}, Verbs: verbs})
	}
	owner, err := mappingOf(c, reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)) //nolint:errcheck // it is the type
	if err != nil {
		return nil, err
	}
	// Owner references that block the deletion of the owner need it where the admission plugin
	// OwnerReferencesPermissionEnforcement is on, as in OpenShift.
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{owner.Resource.Group}, Resources: []string{owner.Resource.Resource + "/finalizers"}, Verbs: []string{"update"}})
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), cmp.Compare(a.Resources[0], b.Resources[0]))
	})
	return rules, nil
}

func (c *children[T]) declared() *settings { return c.settings }

func mappingOf(c client.Client, obj client.Object) (*meta.RESTMapping, error) {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w: register it with the scheme of the client", obj, err)
	}
	mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("resource of %s: %w", gvk.Kind, err)
	}
	return mapping, nil
}

// Markers returns rules as comments that controller-gen makes a role of, one on a line.
func Markers(rules []rbacv1.PolicyRule) string {
	var text strings.Builder
	for _, r := range rules {
		groups := make([]string, len(r.APIGroups))
		for i, group := range r.APIGroups {
			if groups[i] = group; group == "" {
				groups[i] = `""`
			}
		}
		fmt.Fprintf(&text, "// +kubebuilder:rbac:groups=%s,resources=%s,verbs=%s\n", strings.Join(groups, ";"), strings.Join(r.Resources, ";"), strings.Join(r.Verbs, ";"))
	}
	return text.String()
}
