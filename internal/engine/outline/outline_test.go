// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package outline_test

import (
	"fmt"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

func TestKindNames(t *testing.T) {
	if got := outline.Kind(0).String() + outline.Kind(99).String(); got != "Kind(0)Kind(99)" {
		t.Error(got)
	}
}

func ExampleNode_String() {
	fmt.Println(outline.Node{
		Kind: outline.KindGraph,
		Children: []outline.Node{
			{Kind: outline.KindAction, Label: "SyncConfig"},
			{Kind: outline.KindAction, Label: "SyncDisk"},
			{Kind: outline.KindIf, Label: "ready", Children: []outline.Node{{Kind: outline.KindAction, Label: "SyncPods"}}},
		},
		After: [][]int{nil, nil, {0, 1}},
	})
	// Output: Graph(SyncConfig, SyncDisk, If(ready, SyncPods) after SyncConfig and SyncDisk)
}
