// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Label returns the value of SetLabel of a set.
func Label(kind schema.GroupKind, owner client.ObjectKey, engine, set string) string {
	return identity{kind, owner, engine, set}.label()
}

var (
	ContentOf  = contentOf
	RemovePath = removePath
	CutElement = cutElement
)
