// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A table answers as one that looks through the keys of all objects.
func TestTable(t *testing.T) {
	key := func(n int) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: fmt.Sprint(n)} }
	random := rand.New(rand.NewPCG(1, 2))
	var list table
	model := map[client.ObjectKey][]client.ObjectKey{}
	for range 5000 {
		own, named := key(random.IntN(5)), key(random.IntN(4))
		switch random.IntN(3) {
		case 0:
			list.add(own, named)
			if !slices.Contains(model[own], named) {
				model[own] = append(model[own], named)
			}
		case 1:
			model[own] = []client.ObjectKey{named, key(4 + random.IntN(3)), named}
			list.set(own, slices.Clone(model[own]))
		default:
			delete(model, own)
			list.set(own, nil)
		}
		for n := range 7 {
			var want, got []string
			for _, by := range slices.SortedFunc(maps.Keys(model), func(a, b client.ObjectKey) int { return strings.Compare(a.Name, b.Name) }) {
				if slices.Contains(model[by], key(n)) {
					want = append(want, by.Name)
				}
			}
			for _, request := range list.of([]client.ObjectKey{key(n)}) {
				got = append(got, request.Name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("of %d: -want +got:\n%s", n, diff)
			}
		}
		if len(model) == 0 && len(list.by)+len(list.from) > 0 {
			t.Fatalf("an empty table has %d keys and %d objects", len(list.by), len(list.from))
		}
	}
}
