// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/condition"
)

func TestSimilar(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{"nothing", "", "", true},
		{"the same", "it is gone", "it is gone", true},
		{"other words", "it is gone", "it is empty", false},
		{"nothing and something", "", "1", false},
		{"a number", "try 1 of 10", "try 10 of 10", true},
		{"another number of numbers", "try 1", "try 1 2", false},
		{"a fraction", "load 0.5", "load 12", true},
		{"ports", "dial tcp 10.0.0.1:43210->10.0.0.2:80: refused", "dial tcp 10.0.0.1:43211->10.0.0.2:80: refused", true},
		{"a number in a word", "web1 is gone", "web2 is gone", true},
		{"names of two of several", "pod web-1 is gone", "pod web-2 is gone", false},
		{"names with more hyphens", "pod my-db-1 is gone", "pod my-db-12 is gone", false},
		{"other IP addresses", "db at 10.0.0.1 refuses", "db at 10.9.9.9 refuses", false},
		{"other IP addresses of the same port", "dial tcp 10.0.0.1:80: refused", "dial tcp 10.0.0.2:80: refused", false},
		{"an id after a hyphen", "request req-1234567 failed", "request req-7654321 failed", true},
		{"a version", "1.2.3", "1.2.4", true},
		{"durations of other units", "gave up after 950ms", "gave up after 1.5s", true},
		{"durations of several units", "gave up after 45s", "gave up after 1h2m3.5s", true},
		{"a number of units that is no duration", "5 minutes", "5 moments", false},
		{"a UUID", "request 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "request ffffffff-ffff-ffff-ffff-ffffffffffff", true},
		{"a UUID in upper case", "request 1B4E28BA-2FA1-11D2-883F-0016D3CCA427", "request 1b4e28ba-2fa1-11d2-883f-0016d3cca427", true},
		{"a time", "at 2026-07-01T12:00:00Z", "at 2026-07-01T12:00:00.25+02:00", true},
		{"a time in Go", "at 2026-07-01 12:00:00 +0000", "at 2027-07-01 12:00:00 +0000", true},
		{"an address", "at 0xc000123456", "at 0xdeadbeef", true},
		{"an id", "request 0a1b2c3d4e5f", "request fedcba987654", true},
		{"an id that begins with letters", "request abcdef01", "request 01abcdef", true},
		{"an id after an underscore", "req_0a1b2c3d4e", "req_deadbeef01", true},
		{"words of hexadecimal letters", "the facade is effaced", "the facade is accede", false},
		{"long words of hexadecimal letters", "defaced fabaceae", "defaced acceedee", false},
		{"a short id is a word", "commit abc1de", "commit abc2ff", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			same(t, fmt.Sprint(tt.a), tt.want, condition.Similar(tt.a, tt.b))
		})
	}
}

// Similar is an equivalence, or which message a condition has would depend on its history.
func TestSimilarIsAnEquivalence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(a|f|1|20|0x|-|:|\.|ms| |deadbeef|2026-07-01T12:00:00Z|#){0,4}`)
		a, b, c := text.Draw(t, "a"), text.Draw(t, "b"), text.Draw(t, "c")
		if !condition.Similar(a, a) {
			t.Errorf("%q is not similar to itself", a)
		}
		same(t, "similar the other way round", condition.Similar(b, a), condition.Similar(a, b))
		if condition.Similar(a, b) && condition.Similar(b, c) && !condition.Similar(a, c) {
			t.Errorf("%q is similar to %q, that is similar to %q, but the first and the last are not", a, b, c)
		}
	})
}
