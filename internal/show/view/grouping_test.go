// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/journal"
)

// summarize returns the groups that are not ready, a line each.
func (w *world) summarize() string {
	var text strings.Builder
	for _, g := range w.server.Summary(w.t.Context(), Filter{}).Groups {
		if g.State != Ready {
			fmt.Fprintf(&text, "%d %s: %s\n", g.Count, g.State, g.Problem())
		}
	}
	return text.String()
}

// Objects that wait for the same object are one group, whatever their own names, and the name of what
// they wait for is said in full.
func TestGroups(t *testing.T) {
	for _, test := range []struct {
		name, want string
		objects    [][3]string
	}{
		{"one Secret for two, another one for a third", "2 not ready: Waiting: waits for Secret default/shop-credentials\n1 not ready: Waiting: waits for Secret default/blog-credentials\n", [][3]string{
			{"shop", "Waiting", "waits for Secret default/shop-credentials"}, {"news", "Waiting", "waits for Secret default/shop-credentials"}, {"blog", "Waiting", "waits for Secret default/blog-credentials"},
		}},
		{"two texts about one Secret", "2 not ready: Waiting: Secret default/shop\n", [][3]string{{"a", "Waiting", "waits for Secret default/shop"}, {"b", "Waiting", "waits for Secret default/shop, which is empty"}}},
		{"names that differ in a number", "1 not ready: NoSecret: Secret ns1/db-1 does not exist\n1 not ready: NoSecret: Secret ns2/db-2 does not exist\n", [][3]string{
			{"a", "NoSecret", "Secret ns1/db-1 does not exist"}, {"b", "NoSecret", "Secret ns2/db-2 does not exist"},
		}},
		{"an object of all namespaces", "2 not ready: Waiting: waits for ClusterIssuer ca\n", [][3]string{{"a", "Waiting", "waits for ClusterIssuer ca"}, {"b", "Waiting", "waits for ClusterIssuer ca"}}},
		{"quantities, and the own name", "2 not ready: Quota: … has # of 10.0.0.1\n", [][3]string{{"one", "Quota", "one has 5GB of 10.0.0.1"}, {"two", "Quota", "two has 7GB of 10.0.0.1"}}},
		{"free text without a name", "2 not ready: Waiting: waits for Pods to end\n", [][3]string{{"a", "Waiting", "waits for Pods to end"}, {"b", "Waiting", "waits for Pods to end"}}},
	} {
		w := newWorld(t)
		for _, o := range test.objects {
			w.put(o[0], o[1], o[2])
		}
		if got := w.summarize(); strings.ReplaceAll(got, "#GB", "#") != test.want {
			t.Errorf("%s: the groups are\n%swant\n%s", test.name, got, test.want)
		}
	}
}

// Where each object waits for one of its own, they are one group that names three, and its page has
// them one by one.
func TestManyGroupsOfOneKind(t *testing.T) {
	w := newWorld(t)
	for i := range 12 {
		w.put(fmt.Sprintf("site%d", i), "Waiting", fmt.Sprintf("waits for Secret shop/key-%d", max(0, i-4)))
	}
	if got, want := w.summarize(), "12 not ready: Waiting: waits for Secret …: Secret shop/key-0 (5), Secret shop/key-1, Secret shop/key-2 and 5 more\n"; got != want {
		t.Errorf("the groups are\n%swant\n%s", got, want)
	}
	table, leave := w.server.view()
	defer leave()
	key := table.choose(filter{}, 1).Groups[0].Key
	if s := table.choose(filter{Group: key}, 1); s.Matching != 12 || len(s.Groups) != 8 || s.Groups[0].Count != 5 {
		t.Errorf("the page of the group has %d objects in %d groups", s.Matching, len(s.Groups))
	}
}

// The journal says what an object waits for if its condition does not.
func TestGroupByTheJournal(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.put(name, "NotYet", "not yet")
		w.reconcile(database(name), journal.Cause{Kind: journal.CauseStart}, journal.ResultWaiting, journal.StepEnded{
			Step: "Read", Phase: journal.PhaseDo, Outcome: journal.Outcome{Waits: []journal.Wait{{For: map[string]string{"a": "Secret shop/x"}[name] + map[string]string{"b": "Secret shop/y", "c": "Secret shop/y"}[name]}}},
		})
	}
	if got, want := w.summarize(), "2 waiting: NotYet: not yet: Secret shop/y\n1 waiting: NotYet: not yet: Secret shop/x\n"; got != want {
		t.Errorf("the groups are\n%swant\n%s", got, want)
	}
}
