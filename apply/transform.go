// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
)

// CacheTransform returns a transform that makes cached objects smaller: of their managed fields it
// keeps what was applied. Children are found unchanged as before, and nothing else of an object
// changes. The manager of an operator.Operator has it; for another one, it is an option:
//
//	cache.Options{DefaultTransform: apply.CacheTransform()}
//
// The objects that it has transformed differ from others:
//
//   - An entry of a client that updates is kept if it shows that a field which was applied was taken
//     and nothing else does, which is rare. Code that names the managers of an object needs the
//     others as well, and has to read the object from the API server.
//   - Objects share the entries, labels and owner references that are equal, as those of the children
//     of an object are, and the texts that most have in common, such as the keys of annotations and
//     what conditions say. As all that is in a cache, they must not be changed.
//   - The entries have no time and no type, and name owner references as a whole. An Update with a
//     copy of such an object leaves the managed fields in the API server as they are, because the
//     API server ignores entries without a type.
//   - Unstructured objects share nothing.
//
// Tombstones and what is no Kubernetes object are left as they are.
func CacheTransform() toolscache.TransformFunc { return witness.CacheTransform() }
