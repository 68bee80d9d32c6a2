// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/lifecycle"
)

// The times of objects whose UIDs are alike fill the range, and each object keeps its own.
func TestSpread(t *testing.T) {
	var tenths [10]int
	for i := range 1000 {
		obj := user("prod", "a")
		obj.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
		d := lifecycle.Spread(time.Minute, obj)
		if d < 54*time.Second || d >= 66*time.Second || d != lifecycle.Spread(time.Minute, obj) {
			t.Fatalf("%s for %s", d, obj.UID)
		}
		tenths[int((d-54*time.Second)/(1200*time.Millisecond))]++
	}
	for _, n := range tenths {
		if n < 60 || n > 140 {
			t.Fatalf("the times are distributed %v", tenths)
		}
	}
}
