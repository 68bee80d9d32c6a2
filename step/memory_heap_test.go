// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// The most that an engine may take of the heap for an object of which it knows nothing special,
// beside what was read and the texts of the object itself.
func TestHeapOfTheMemoryPerObject(t *testing.T) {
	rings.Test(t, "takes a second")
	const objects, most = 10_000, 420
	keys := make([]types.NamespacedName, objects)
	for i := range keys {
		keys[i] = types.NamespacedName{Namespace: "default", Name: fmt.Sprint("object-", i)}
	}
	inUse := func() int {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	before := inUse()
	var m memories[*corev1.ConfigMap]
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	for _, key := range keys {
		m.of(key).startFor(obj)
	}
	took := (inUse() - before) / objects
	t.Logf("%d bytes of heap for each of %d objects", took, objects)
	if took > most {
		t.Errorf("%d bytes of heap for each object, may take %d", took, most)
	}
	runtime.KeepAlive(&m)
	runtime.KeepAlive(keys)
}
