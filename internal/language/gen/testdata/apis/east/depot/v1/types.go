// Package v1 is an API for tests. There are two packages of which the path ends like this one's.
package v1

import "github.com/ctrlkit/ctrlkit/internal/language/gen/golden"

// A Depot is a kind.
type Depot struct{ golden.Shop }

// DepotList is a list of Depots.
type DepotList struct {
	golden.ShopList
	Items []Depot
}
