// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/permission"
	"github.com/ctrlkit/ctrlkit/step"
)

// Uses implements [step.UseDeclarer]: what is done with the declared kinds.
func (c *children[T]) Uses() []permission.Use {
	var uses []permission.Use
	for _, k := range c.settings.kinds {
		verbs, by := []string{"create", "patch", "delete"}, "keeps its children"
		if k.former && !k.owned && !k.tracked && !k.kept {
			verbs, by = []string{"delete"}, "deletes former children"
		}
		if k.stays() {
			verbs = []string{"create", "patch"}
		}
		uses = append(uses, permission.Use{Object: k.object, Verbs: verbs, By: by})
	}
	if slices.ContainsFunc(c.settings.kinds, func(k *kind) bool { return k.owned }) {
		// Owner references that block the deletion of the owner need it where the admission plugin
		// OwnerReferencesPermissionEnforcement is on, as in OpenShift.
		owner := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:errcheck // it is the type
		uses = append(uses, permission.Use{Object: owner, Subresource: "finalizers", Verbs: []string{"update"}, By: "its children block the deletion of their owner"})
	}
	return uses
}

// Rules returns what the operator's role has to allow for a step of [Children], by the kinds that
// it declares. The client knows their resources. [step.Engine.Needs] has them with all else that an
// engine needs.
func Rules[T client.Object](c client.Client, children step.Step[T]) ([]rbacv1.PolicyRule, error) {
	with, ok := children.(interface {
		step.UseDeclarer[T]
		declared() *settings
	})
	if !ok {
		return nil, fmt.Errorf("step %q is not made by apply.Children: only such steps declare kinds", children.Name())
	}
	uses := with.Uses()
	for _, k := range with.declared().kinds {
		uses = append(uses, permission.Use{Object: k.object, Verbs: permission.Reads()})
	}
	needs, err := permission.Needs(c, uses...)
	if err != nil {
		return nil, err
	}
	return permission.Rules(needs), nil
}

func (c *children[T]) declared() *settings { return c.settings }

// Markers returns rules as comments that controller-gen makes a role of, one on a line, as
// [permission.Markers] does.
func Markers(rules []rbacv1.PolicyRule) string { return permission.Markers(rules) }
