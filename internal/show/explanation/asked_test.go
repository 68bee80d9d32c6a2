// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The shard that has answered need not be the one that has the object: then the other one is named,
// with the command that reaches it if it is certain.
func TestAsked(t *testing.T) {
	const label, drain = "shard.example.com/things", "drain.example.com/things"
	by := func(host, namespace string) *Asked {
		header := http.Header{}
		for name, value := range map[string]string{
			ShardHeader: "op-a", RingHeader: "things", HostHeader: host, NamespaceHeader: namespace, AssignedHeader: label, DrainHeader: drain,
		} {
			header.Set(name, value)
		}
		return AskedBy(header)
	}
	const asked, elsewhere = `Asked was shard "op-a" of ring "things"`, `, which may know only what was. The object is assigned to shard "op-b"`
	for name, tt := range map[string]struct {
		asked  *Asked
		labels map[string]string
		want   []string
	}{
		"its own":              {by("op-a", "ops"), map[string]string{label: "op-a"}, []string{asked}},
		"of another one":       {by("op-a", "ops"), map[string]string{label: "op-b"}, []string{asked + elsewhere + ": kubectl port-forward -n ops pod/op-b 8443"}},
		"names of its own":     {by("host", "ops"), map[string]string{label: "op-b"}, []string{asked + elsewhere}},
		"outside a cluster":    {by("op-a", ""), map[string]string{label: "op-b"}, []string{asked + elsewhere}},
		"no name of a Pod":     {by("op-a", "ops"), map[string]string{label: "B$(x)"}, []string{asked + `, which may know only what was. The object is assigned to shard "B$(x)"`}},
		"no namespace":         {by("op-a", "$(x)"), map[string]string{label: "op-b"}, []string{asked + elsewhere}},
		"handed over":          {by("op-a", "ops"), map[string]string{label: "op-a", drain: ""}, []string{asked, `Shard "op-a" has to hand it over to another one, and has not done so yet`}},
		"of none":              {by("op-a", "ops"), map[string]string{}, []string{asked, "The object is assigned to no shard, it has no label " + label + ": does the sharder run, and does the ring list this kind?"}},
		"an object not read":   {by("op-a", "ops"), nil, []string{asked}},
		"an operator of later": {&Asked{Shard: "op-a", Ring: "things"}, map[string]string{}, []string{asked}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.asked.lines(tt.labels)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := AskedBy(http.Header{HostHeader: {"op-a"}}); got != nil {
		t.Errorf("without a ring, asked was %+v", got)
	}
}
