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

// poll returns when the resource is observed again.
func (s *session[T]) poll() time.Duration {
	byUser, _ := pollOf(s.req.Object) // find has checked it
	var byOperator time.Duration
	if s.options.PollOf != nil {
		byOperator = s.options.PollOf(s.req.Object)
	}
	return lifecycle.Spread(cmp.Or(byUser, byOperator, s.options.Poll), s.req.Object)
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
