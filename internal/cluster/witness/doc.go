// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package witness finds out from an object in the cache whether to apply an intent to it again
// would change anything, without comparing values:
//
//	intent := ... // the configuration to apply, without witness.Annotation
//	unchanged := live.GetAnnotations()[witness.Annotation] == witness.Hash(intent) &&
//		witness.Covers(live.GetManagedFields(), manager, intent)
//
// The hash of the intent travels in an annotation of each apply, so a change of the intent is seen.
// The API server removes a field from our entry in metadata.managedFields when another client
// changes or removes it, so that is seen as well. What defaults, webhooks and the formats of
// quantities make of a value does not matter, and nothing is kept in memory: a restarted operator
// sees the same.
//
// docs/design/0011-unchanged-children-are-witnessed.md has the cases in which a change is not seen.
package witness
