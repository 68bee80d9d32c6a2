// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
)

// uses are what is done with the declared kinds.
func (c *children[T]) uses() []permission.Use {
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
