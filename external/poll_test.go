// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The times of objects fill the range, also if their UIDs are alike, and each object keeps its own.
func TestSpread(t *testing.T) {
	for name, uid := range map[string]func(i int) string{
		"random": func(i int) string {
			return fmt.Sprintf("%08x-1e64-4a8b-9d8f-%012x", uint32(i)*2654435761, uint64(i)*0x9e3779b97f4a7c15>>16)
		},
		"counted": func(i int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", i) },
	} {
		var tenths [10]int
		for i := range 1000 {
			obj := &metav1.ObjectMeta{UID: types.UID(uid(i))}
			d := spread(time.Minute, obj)
			if d < 54*time.Second || d >= 66*time.Second || d != spread(time.Minute, obj) {
				t.Fatalf("%s for %s", d, obj.UID)
			}
			tenths[int((d-54*time.Second)/(1200*time.Millisecond))]++
		}
		if slices.Min(tenths[:]) < 60 || slices.Max(tenths[:]) > 140 { // 100 are expected, with a deviation of 9.5
			t.Errorf("%s: the times are distributed %v", name, tenths)
		}
	}
}
