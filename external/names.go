// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// names are those that objects have, with whose they are: a manifest of one of them would change what
// exists, or another manifest.
type names map[objectName]string

// objectName is what identifies an object in a cluster.
type objectName struct {
	kind string
	types.NamespacedName
}

func nameOf(kind string, obj client.Object) objectName {
	return objectName{kind, client.ObjectKeyFromObject(obj)}
}

// give takes the name of an object, or one with a suffix if it is taken. The suffix is made of what
// identifies the resource.
func (n names) give(kind string, obj client.Object, system string, r Resource) error {
	if mistakes := apivalidation.NameIsDNSSubdomain(obj.GetName(), false); len(mistakes) > 0 {
		return fmt.Errorf("its object can't have the name %q: %s", obj.GetName(), mistakes[0])
	}
	name := nameOf(kind, obj)
	if n[name] != "" {
		sum := sha256.Sum256([]byte(system + "\n" + r.Scope + "\n" + r.ID))
		suffix := "-" + hex.EncodeToString(sum[:4])
		obj.SetName(strings.TrimRight(name.Name[:min(len(name.Name), validation.DNS1123SubdomainMaxLength-len(suffix))], "-.") + suffix)
		name = nameOf(kind, obj)
	}
	if other := n[name]; other != "" {
		return fmt.Errorf("its object is to be named %q, as %s", name.NamespacedName, other)
	}
	n[name] = fmt.Sprintf("that of %q of %s", r.ID, system)
	return nil
}
