// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The limits are those of k8s.io/kubernetes v1.37.2, legacyValidateEvent: they hold in both APIs
// for events with the time of a series, and in core/v1 not for those of older clients.
func TestLengthOfEvents(t *testing.T) {
	for _, api := range []struct{ group, note string }{{"", "message"}, {"events.k8s.io", "note"}} {
		for length, want := range map[int]string{
			1024: "", 1025: `message: Invalid value: "": can have at most 1024 characters`,
		} {
			o := object{"eventTime": "2026-01-01T00:00:00.000000Z", "action": "Do", "reason": "Broken", "reportingInstance": "a", api.note: strings.Repeat("a", length)}
			got := ""
			if errs := Validate(schema.GroupVersionKind{Group: api.group, Version: "v1", Kind: "Event"}, o); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if got != want {
				t.Errorf("%s of %d bytes in %q: got %q, want %q", api.note, length, api.group, got, want)
			}
		}
	}
	old := object{"message": strings.Repeat("a", 5000)}
	if errs := Validate(schema.GroupVersionKind{Version: "v1", Kind: "Event"}, old); len(errs) > 0 {
		t.Errorf("an event without a time: %v", errs)
	}
}
