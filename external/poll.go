// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/lifecycle"
)

// poll returns when the resource of an object is observed again.
func (e *external[T]) poll(obj T) time.Duration {
	byUser, _ := pollOf(obj) // find has checked it
	var byOperator time.Duration
	if e.options.PollOf != nil {
		byOperator = e.options.PollOf(obj)
	}
	return lifecycle.Spread(cmp.Or(byUser, byOperator, e.options.Poll), obj)
}

// pollOf returns what the users of an object say, zero if they say nothing.
func pollOf(obj client.Object) (time.Duration, error) {
	text := obj.GetAnnotations()[PollAnnotation]
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("annotation %s is %q: write a duration of at least a second, such as 10m, or remove it", PollAnnotation, text)
	}
	return d, nil
}
