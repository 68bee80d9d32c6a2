// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"
)

// What a real API server can answer to a write that it could carry out, by the kind of the write.
// 404 is never among it: what exists is found, and what doesn't exist is refused without a fault.
func TestRefusalsOfWrites(t *testing.T) {
	tests := map[string]struct {
		write Write
		want  string
	}{
		"create":                                 {Write{Verb: "create", Named: true}, "429 403 422 500 webhook"},
		"create with a generated name":           {Write{Verb: "create"}, "429 403 422 500 webhook"},
		"apply that creates":                     {Write{Verb: "patch", Named: true}, "429 403 422 500 webhook"},
		"apply that changes":                     {Write{Verb: "patch", Named: true, Exists: true}, "429 403 422 500 webhook"},
		"apply with a resource version":          {Write{Verb: "patch", Named: true, Exists: true, Conditional: true}, "409 429 403 422 500 webhook"},
		"update with a resource version":         {Write{Verb: "update", Exists: true, Conditional: true}, "409 429 403 422 500 webhook"},
		"update without one":                     {Write{Verb: "update", Exists: true}, "429 403 422 500 webhook"},
		"update of the status":                   {Write{Verb: "update", Subresource: "status", Exists: true, Conditional: true}, "409 429 403 422 500"},
		"patch with a resource version":          {Write{Verb: "patch", Exists: true, Conditional: true}, "409 429 403 422 500 webhook"},
		"patch without one":                      {Write{Verb: "patch", Exists: true}, "429 403 422 500 webhook"},
		"patch of the status":                    {Write{Verb: "patch", Subresource: "status", Exists: true}, "429 403 422 500"},
		"update of the scale":                    {Write{Verb: "update", Subresource: "scale", Exists: true}, "429 403 422 500"},
		"delete":                                 {Write{Verb: "delete", Exists: true}, "429 403 500 webhook"},
		"delete with a version as its condition": {Write{Verb: "delete", Exists: true, Conditional: true}, "409 429 403 500 webhook"},
		"deletecollection":                       {Write{Verb: "deletecollection"}, "429 403 500 webhook"},
	}
	for name, test := range tests {
		place := Place{Point: AtWrite, At: 1, Write: &test.write}
		var got []string
		for _, f := range place.Faults() {
			if f.Kind == RefuseWrite {
				got = append(got, f.How)
			}
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// What other clients can do to an object just before a write depends on what the write is about.
func TestWhatOthersCanDoBeforeAWrite(t *testing.T) {
	tests := map[string]struct {
		write Write
		want  string
	}{
		"a creation":                             {Write{Verb: "create", Named: true, Owned: true}, "occupy occupy leave"},
		"an apply that creates":                  {Write{Verb: "patch", Named: true, Owned: true}, "occupy occupy leave"},
		"a creation without an owner":            {Write{Verb: "create", Named: true}, "occupy occupy"},
		"a creation with a generated name":       {Write{Verb: "create", Owned: true}, "leave"},
		"a creation of what exists":              {Write{Verb: "create", Named: true, Owned: true, Exists: true}, "touch"},
		"a creation of a child that exists":      {Write{Verb: "create", Named: true, Child: true, Exists: true}, "touch"},
		"an update of a child":                   {Write{Verb: "update", Child: true, Exists: true}, "touch delete"},
		"an update of the status of a child":     {Write{Verb: "update", Subresource: "status", Child: true, Exists: true}, "touch delete"},
		"a deletion of a child":                  {Write{Verb: "delete", Child: true, Exists: true}, "touch delete"},
		"a deletion of a child that is not here": {Write{Verb: "delete", Child: true}, ""},
		"an update of another object":            {Write{Verb: "update", Exists: true}, "touch"},
		"a deletion of many":                     {Write{Verb: "deletecollection", Child: true, Exists: true}, "touch"},
	}
	for name, test := range tests {
		place := Place{Point: AtWrite, At: 1, Write: &test.write}
		var got []string
		for _, f := range place.Faults() {
			switch f.Kind {
			case TouchBeforeWrite, OccupyName, OccupyNameByController, LeaveOrphan, DeleteBeforeWrite:
				first, _, _ := strings.Cut(f.String(), " ")
				got = append(got, first)
			}
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
