// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// poll returns when the resource of an object is observed again.
func (e *external[T]) poll(obj T) time.Duration {
	byUser, _ := pollOf(obj) // find has checked it
	var byOperator time.Duration
	if e.options.PollOf != nil {
		byOperator = e.options.PollOf(obj)
	}
	return spread(cmp.Or(byUser, byOperator, e.options.Poll), obj)
}

// pollOf returns what the users of an object say, zero if they say nothing.
func pollOf(obj client.Object) (time.Duration, error) {
	text := obj.GetAnnotations()[pollAnnotation]
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("annotation %s is %q: write a duration of at least a second, such as 10m, or remove it", pollAnnotation, text)
	}
	return d, nil
}

// spread returns a time within a tenth of d, more or less: another one for each object, and always
// the same for one. Objects that are looked at once in a while are so not looked at all at once,
// also after a restart.
func spread(d time.Duration, obj metav1.Object) time.Duration {
	sum := sha256.Sum256([]byte(obj.GetUID())) // simpler hashes do not spread UIDs that are alike
	share := float64(binary.BigEndian.Uint32(sum[:]))/float64(1<<32)*0.2 - 0.1
	return d + time.Duration(share*float64(d))
}
