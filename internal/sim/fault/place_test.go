// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// What can strike at a place depends on what happens there: which answers a real API server can give to a
// write that it could carry out, and what other clients can do just before it. 404 is never among the
// answers: what exists is found, and what doesn't exist is refused without a fault.
func TestFaultsOfPlaces(t *testing.T) {
	places := map[string]Place{
		"before the start":  {Point: AtWrite, Withholdable: []string{"secrets default/s"}},
		"a read":            {Point: AtRead, At: 2},
		"a call":            {Point: AtCall, At: 1},
		"a call that acts":  {Point: AtCall, At: 1, Mutates: true},
		"an event":          {Point: AtEvent, At: 2, Of: "jobs.batch"},
		"a user's deletion": {Point: AtDeletion, At: 1, Withholdable: []string{"secrets default/s"}},
		"a detour":          {Point: AtDetour, At: 1},
		"a checkpoint":      {Point: WhenIdle, At: 1},
		"a deletion, with everything else": {
			Point: AtWrite, At: 1, Watched: []string{"jobs.batch"}, UsesClock: true, Withholdable: []string{"secrets default/s"},
			Write: &Write{Verb: "delete", Users: []string{"a x/a", "a x/b"}, Statuses: []string{"a x/a"}, Annotated: []string{"a x/b"}},
		},
	}
	for name, w := range map[string]Write{
		"any write":                              {Verb: "delete", Subresource: "any"}, // is not repeated at the others
		"a creation":                             {Verb: "create", Named: true},
		"a creation with a generated name":       {Verb: "create"},
		"a creation of a child":                  {Verb: "create", Named: true, Owned: true},
		"a creation of a generated child":        {Verb: "create", Owned: true},
		"a creation of a child that exists":      {Verb: "create", Named: true, Owned: true, Child: true, Exists: true},
		"an apply that creates":                  {Verb: "patch", Named: true},
		"an apply that creates a child":          {Verb: "patch", Named: true, Owned: true},
		"an apply that changes":                  {Verb: "patch", Named: true, Exists: true},
		"an apply with a resource version":       {Verb: "patch", Named: true, Exists: true, Conditional: true},
		"an update":                              {Verb: "update", Exists: true},
		"an update with a resource version":      {Verb: "update", Exists: true, Conditional: true},
		"an update of the status":                {Verb: "update", Subresource: "status", Exists: true, Conditional: true},
		"an update of the scale":                 {Verb: "update", Subresource: "scale", Exists: true},
		"an update of a child":                   {Verb: "update", Child: true, Exists: true},
		"an update of the status of a child":     {Verb: "update", Subresource: "status", Child: true, Exists: true},
		"a patch":                                {Verb: "patch", Exists: true},
		"a patch with a resource version":        {Verb: "patch", Exists: true, Conditional: true},
		"a patch of the status":                  {Verb: "patch", Subresource: "status", Exists: true},
		"a finalizer":                            {Verb: "patch", Exists: true, AddsFinalizer: true},
		"a deletion":                             {Verb: "delete", Exists: true},
		"a deletion of a version":                {Verb: "delete", Exists: true, Conditional: true},
		"a deletion of a child":                  {Verb: "delete", Child: true, Exists: true},
		"a deletion of a child that is not here": {Verb: "delete", Child: true},
		"a deletion of many":                     {Verb: "deletecollection"},
		"a deletion of many children":            {Verb: "deletecollection", Child: true, Exists: true},
	} {
		places[name] = Place{Point: AtWrite, At: 1, Write: &w}
	}
	every := texts(places["any write"])
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(places)) {
		found := texts(places[name])
		if places[name].Write != nil && name != "any write" {
			all := len(found)
			if found = slices.DeleteFunc(found, func(text string) bool { return slices.Contains(every, text) }); all-len(found) != len(every) {
				t.Errorf("%s: what can strike at any write can't strike there", name)
			}
		}
		fmt.Fprintf(&b, "%s:\n", name)
		for _, text := range found {
			fmt.Fprintf(&b, "    %s\n", text)
		}
	}
	golden.Compare(t, "places.txt", b.String())
}

func texts(p Place) (list []string) {
	for _, f := range p.Faults() {
		list = append(list, f.String())
	}
	return list
}
