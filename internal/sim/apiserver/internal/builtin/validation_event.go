// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// longestNote is how many bytes the note of an event has at most. The API server calls them
// characters.
const longestNote = 1024

// validEvent checks an event that has the time of its series. In core/v1, one without it may be as
// long as it likes.
func validEvent(o object) field.ErrorList {
	if o["eventTime"] == nil {
		return nil
	}
	var errs field.ErrorList
	for _, f := range []struct {
		name     string
		required bool
		most     int
	}{{"reportingInstance", true, 128}, {"action", true, 128}, {"reason", true, 128}, {"message", false, longestNote}} {
		value, _ := o[f.name].(string)
		if f.name == "message" {
			note, _ := o["note"].(string)
			value = cmp.Or(value, note)
		}
		switch {
		case value == "" && f.required:
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		case len(value) > f.most:
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", fmt.Sprintf("can have at most %d characters", f.most)))
		}
	}
	return errs
}
