// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is undone is what the write has changed and nothing has changed since, however deep it is.
func TestUndo(t *testing.T) {
	tests := map[string]struct{ before, after, now, want string }{ // want "" stands for nothing undone
		"a change":            {`{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":2,"b":3}`, `{"a":1,"b":3}`},
		"an addition":         {`{}`, `{"a":2}`, `{"a":2,"b":3}`, `{"b":3}`},
		"a removal":           {`{"a":1}`, `{}`, `{"b":3}`, `{"a":1,"b":3}`},
		"changed since":       {`{"a":1}`, `{"a":2}`, `{"a":3}`, ""},
		"removed since":       {`{"a":1}`, `{"a":2}`, `{}`, ""},
		"added since":         {`{"a":1}`, `{}`, `{"a":3}`, ""},
		"undone already":      {`{"a":1}`, `{"a":2}`, `{"a":1}`, ""},
		"no change":           {`{"a":1}`, `{"a":1}`, `{"a":2}`, ""},
		"within a map":        {`{"s":{"a":1,"b":1}}`, `{"s":{"a":2,"b":1}}`, `{"s":{"a":2,"b":3}}`, `{"s":{"a":1,"b":3}}`},
		"within a list":       {`{"l":[{"a":1,"b":1}]}`, `{"l":[{"a":2,"b":1}]}`, `{"l":[{"a":2,"b":3}]}`, `{"l":[{"a":1,"b":3}]}`},
		"a list":              {`{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1,2]}`, `{"l":[1]}`},
		"a list, since":       {`{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1,2,3]}`, ""},
		"a map to a string":   {`{"a":{"b":1}}`, `{"a":"c"}`, `{"a":"c"}`, `{"a":{"b":1}}`},
		"metadata and status": {`{"metadata":1,"status":1,"kind":"a"}`, `{"metadata":2,"status":2,"kind":"b"}`, `{"metadata":2,"status":2,"kind":"b"}`, ""},
	}
	decode := func(text string) map[string]any {
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, test := range tests {
		now := decode(test.now)
		undone := (&fight{before: decode(test.before), after: decode(test.after)}).undo(now)
		want := test.want
		if want == "" {
			want = test.now
		}
		if diff := cmp.Diff(decode(want), now); diff != "" || undone != (test.want != "") {
			t.Errorf("%s: undone %t: %s", name, undone, diff)
		}
	}
}
