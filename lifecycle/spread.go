// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Spread returns a time within a tenth of d, more or less: another one for each object, and always
// the same for one. Objects that are looked at once in a while are so not looked at all at once,
// also after a restart.
func Spread(d time.Duration, obj metav1.Object) time.Duration {
	sum := sha256.Sum256([]byte(obj.GetUID())) // simpler hashes do not spread UIDs that are alike
	share := float64(binary.BigEndian.Uint32(sum[:]))/float64(1<<32)*0.2 - 0.1
	return d + time.Duration(share*float64(d))
}
