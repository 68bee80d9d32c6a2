// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// PauseAnnotation on an object has the engine leave the object alone, its deletion included, unless
// its value is "false". The condition Paused says so, and an invalid value, which counts as "true".
const PauseAnnotation = condition.PauseAnnotation

// Reasons of the condition Paused.
const (
	reasonPaused       = "Paused"
	reasonInvalidPause = "InvalidValue"
)

// IsPaused reports whether an engine leaves an object alone because of its [PauseAnnotation], also
// because the value is invalid.
func IsPaused(obj client.Object) bool {
	reason, _ := pause(obj)
	return reason != ""
}

// pause returns why an object is to be left alone; an empty reason if it is not. An invalid value
// is taken for a pause, because one was wanted.
func pause(obj client.Object) (reason, message string) {
	value, ok := obj.GetAnnotations()[PauseAnnotation]
	switch {
	case !ok || strings.EqualFold(value, "false"):
		return "", ""
	case strings.EqualFold(value, "true"):
		message = fmt.Sprintf("annotation %s is %q: nothing is done until it is removed", PauseAnnotation, value)
		if !obj.GetDeletionTimestamp().IsZero() {
			message += "; the deletion waits for that, too"
		}
		return reasonPaused, message
	default:
		return reasonInvalidPause, fmt.Sprintf("annotation %s is %q, which is neither \"true\" nor \"false\": nothing is done until it is", PauseAnnotation, value)
	}
}
