// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !js

package catalog

import (
	"context"
	"errors"
	"go/types"
	"maps"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
)

// Read returns the text of the catalog of the kinds of Kubernetes, from the Go packages that go.mod
// requires.
func Read(ctx context.Context) ([]byte, error) {
	paths := slices.Compact(slices.Sorted(maps.Values(check.BuiltinPackages())))
	loaded, err := check.GoLoader{}.Load(ctx, ".", paths)
	if err != nil {
		return nil, err
	}
	var all []*types.Package
	for _, path := range paths {
		p := loaded[path]
		if p == nil || p.Problem != "" {
			return nil, errors.New(path + " can't be loaded")
		}
		all = append(all, p.Types)
	}
	return Write(all)
}
