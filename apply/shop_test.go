// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import "github.com/ctrlkit/ctrlkit/internal/cluster/testkind"

// A Shop is the owner of the sets that the tests keep.
type Shop = testkind.Object[ShopSpec, testkind.Status]

type ShopSpec struct {
	Size int `json:"size,omitempty"`
}

var (
	shops          = testkind.Of[ShopSpec, testkind.Status]("Shop")
	shopVersion    = testkind.Version
	shopDefinition = shops.Definition
	scheme         = testkind.Scheme(shops)
)
