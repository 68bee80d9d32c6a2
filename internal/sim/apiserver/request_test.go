// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// Clients write booleans in several ways, that of Python with a capital letter.
func TestWhatIsAWatch(t *testing.T) {
	for query, want := range map[string]string{
		"": "list", "?watch=true": "watch", "?watch=True": "watch", "?watch=1": "watch", "?watch": "watch",
		"?watch=false": "list", "?watch=False": "list", "?watch=0": "list",
	} {
		r, err := apiserver.NewRequest("GET", "/api/v1/configmaps"+query, "", nil)
		if err != nil || r.Verb != want {
			t.Errorf("%q: the verb is %q, error %v, want %q", query, r.Verb, err, want)
		}
	}
}
