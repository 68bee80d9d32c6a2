// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"fmt"

	"github.com/ctrlkit/ctrlkit/reference"
)

// A Barn stands in all big Yards, also in those of other namespaces that allow it, and in a Yard of
// its own if there is one. Its spec has the name of the first one.
func ExampleNew() {
	yardsOf := reference.New(reference.Options[*Barn, *Yard]{
		Name: "yards",
		Targets: func(obj *Barn) []reference.Target {
			return []reference.Target{
				{Labels: map[string]string{"size": "big"}, Every: true, AnyNamespace: true},
				{Name: obj.Spec.Yard, Optional: true},
			}
		},
		Allowed: reference.Consented, // allow.references.ctrlkit.dev/from: shop, of the Yard
		Copy:    func(obj *Barn, yards []*Yard) { obj.Spec.Copied = yards[0].Name },
	})
	fmt.Println(yardsOf.Annotation(), yardsOf.ResolveAnnotation())
	// Output: references.ctrlkit.dev/yards resolve.references.ctrlkit.dev/yards
}
