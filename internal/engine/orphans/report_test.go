// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package orphans_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/engine/orphans"
	"github.com/ctrlkit/ctrlkit/journal"
)

func TestReport(t *testing.T) {
	r := &orphans.Report{Systems: []orphans.System{
		{Name: "nats://b", Error: "connection refused"},
		{Name: "nats://a", Orphans: []orphans.Resource{{ID: "Z", Owner: "u1"}, {ID: "evil\x1b[2J\ttab", Owner: "u2"}},
			Missing: []orphans.Object{{Object: journal.Object{Kind: "Stream", Namespace: "shop", Name: "orders"}, ID: "ORDERS"}}},
	}}
	r.Sort()
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	want := `SYSTEM     RESOURCE          OBJECT               PROBLEM
nats://a   Z                 uid u1               no object of this operator in this cluster has it
nats://a   evil\x1b[2J tab   uid u2               no object of this operator in this cluster has it
nats://a   ORDERS            Stream shop/orders   the resource is gone
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := r.Err(); r.Found() != 3 || err == nil || err.Error() != "not audited: nats://b: connection refused" {
		t.Errorf("found %d, error %v", r.Found(), err)
	}
	text.Reset()
	empty := &orphans.Report{Systems: []orphans.System{{Name: "a"}, {Name: "b"}}}
	if err := empty.Write(&text); err != nil || text.String() != "nothing is orphaned in 2 systems\n" || empty.Err() != nil {
		t.Errorf("%q, error %v", text.String(), err)
	}
}
