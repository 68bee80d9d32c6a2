// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
)

// ByNothing is for a system that chooses the ids of resources, and has nothing to find a resource
// by whose id was lost. After a crash between the creation and the record of the id a person has
// to look: the condition says for what, and how to continue.
func ByNothing[T client.Object]() Identity[T] { return Identity[T]{class: byNothing[T]{}} }

// byNothing implements class.
type byNothing[T client.Object] struct{ minted[T] }

// resume implements class: nothing shows whether the resource was created.
func (byNothing[T]) resume(s *session[T]) (again bool, err error) {
	when := "at " + s.record.at.UTC().Format("2006-01-02 15:04:05 UTC")
	if s.record.lost() {
		when = "before " + s.record.at.UTC().Format("2006-01-02 15:04:05 UTC") + ", another client has removed the annotations of the object"
	}
	set := "set the annotation " + IDAnnotation + " to its id"
	if !s.options.StoresOwner { // nothing shows that it was made for the object
		set += ", which the object needs the right to adopt: have the owner of the Namespace add the id to its annotation " + adoptAnnotation
	}
	err = fmt.Errorf("a resource was being created %s, and nothing shows whether it exists", when)
	return false, remediable(failure.Terminal(err, reasonCreationUnknown, ""),
		"look in the external system for a resource that was created for the object. If there is one, "+set+
			"; if there is none, set the annotation "+IntentAnnotation+" to "+nothing)
}
