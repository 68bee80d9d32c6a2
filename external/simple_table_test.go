// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
)

// policyRules are what is done, by what was found for the three parts of the policy. The first row that
// matches holds. They are written down from the guide, docs/lifecycles.md, and share nothing with
// the code.
//
//   - The column alive is for an object that is not being deleted: make is Claim and
//     CreateOrUpdate, claim is Claim and UpdateStatus, look is UpdateStatus. The next one is the
//     same for a reconciler that checks verbs itself.
//   - The column managed is the reason of the condition.
//   - The column deleted is for an object that is being deleted.
const policyRules = `
reconcile         reclaim  allow                  alive  checking  managed         deleted
bad               any      any                    look   look      InvalidPolicy   blocked
any               bad      any                    look   look      InvalidPolicy   blocked
any               any      bad                    look   look      InvalidPolicy   blocked
skip              any      any                    look   look      Skipped         detach
any               any      observe                look   look      Restricted      detach
any               any      observe,create         look   create    Restricted      detach
any               any      observe,update         look   update    Restricted      detach
any               any      observe,create,update  make   make      Restricted      detach
detach-on-delete  any      observe,delete         look   look      Restricted      detach
manage            retain   observe,delete         look   look      Restricted      detach
manage            delete   observe,delete         claim  claim     Restricted      delete
detach-on-delete  any      *                      make   make      DetachOnDelete  detach
manage            retain   *                      make   make      DetachOnDelete  detach
manage            delete   *                      make   make      Managed         delete
`

// What the columns of the table are made of. The last of each is bad.
var (
	reconciles = []string{"manage", "skip", "detach-on-delete", "mange"}
	reclaims   = []string{"delete", "retain", "keep"}
	allows     = []string{"*", "observe", "observe,create", "observe,update", "observe,create,update", "observe,delete", "create"}
)

// A rule is a row.
type rule struct {
	reconcile, reclaim, allow, alive, checking, managed, deleted string
	used                                                         bool
}

func parseRules() (all []*rule) {
	for _, line := range strings.Split(strings.TrimSpace(policyRules), "\n")[1:] {
		f := strings.Fields(line)
		all = append(all, &rule{f[0], f[1], f[2], f[3], f[4], f[5], f[6], false})
	}
	return all
}

func (r *rule) matches(c cell) bool {
	is := func(want, got, bad string) bool { return want == "any" || want == got || want == "bad" && got == bad }
	return is(r.reconcile, c.reconcile, "mange") && is(r.reclaim, c.reclaim, "keep") && is(r.allow, c.allow, "create")
}

// A cell is one combination of the table. Package policy has the test of what holds if the object,
// its namespace and the operator say different things.
type cell struct {
	reconcile, reclaim, allow string // what the object says
	reconciler                string // full, plain or checking
	state                     string // one of states
}

// states are what an object may be when it is reconciled. An admitted one has the finalizer from an
// admission policy. That of a claimed one was written with its claim.
var states = []string{"new", "admitted", "claimed", "admitted, deleted", "claimed, deleted"}

// A result is what a reconcile has done.
type result struct {
	calls     string
	there     bool // the object
	finalizer bool
	claimed   bool
	managed   string // status and reason of the condition
	ready     string
}

// want returns what a rule says of a cell.
func (r *rule) want(c cell) result {
	admitted, was := strings.HasPrefix(c.state, "admitted"), strings.HasPrefix(c.state, "claimed")
	w := result{there: true, finalizer: admitted || was, claimed: was, managed: "False " + r.managed, ready: "True Ready"}
	if r.deleted == "blocked" {
		w.ready = "False InvalidPolicy"
	}
	if strings.HasSuffix(c.state, "deleted") {
		if r.deleted == "blocked" {
			return w
		}
		w = result{}
		if r.deleted == "delete" && (was || c.reconciler == "plain") {
			w.calls = "Delete"
		}
		return w
	}
	act := r.alive
	if c.reconciler == "checking" {
		act = r.checking
	}
	w.calls = map[string]string{
		"look": "UpdateStatus", "claim": "Claim UpdateStatus", "make": "Claim CreateOrUpdate",
		"create": "Claim CreateOrUpdate(create)", "update": "Claim CreateOrUpdate(update)",
	}[act]
	if act != "look" {
		w.finalizer, w.claimed = true, true
	}
	if act != "look" && act != "claim" {
		w.managed = "True " + r.managed
	}
	if c.reconciler == "plain" { // it has no Claim and no UpdateStatus
		_, w.calls, _ = strings.Cut(w.calls, " ")
		w.calls = strings.TrimPrefix(w.calls, "UpdateStatus")
	}
	return w
}

var every = flag.Int("every", 4, "try every n-th combination only; 1 is all")

// Each combination of what an object says, and of what it is, has the calls, the finalizer and the
// conditions of the rules.
func TestTable(t *testing.T) {
	rings.Test(t, "takes seconds")
	all, d, n := parseRules(), newDesk(t), 0
	for _, reconcile := range reconciles {
		for _, reclaim := range reclaims {
			for _, allow := range allows {
				for _, reconciler := range []string{"full", "plain", "checking"} {
					for _, state := range states {
						c := cell{reconcile, reclaim, allow, reconciler, state}
						r := all[slices.IndexFunc(all, func(r *rule) bool { return r.matches(c) })]
						r.used = true
						if n++; n%*every != 0 {
							continue
						}
						if got, want := d.run(c), r.want(c); got != want {
							t.Fatalf("%+v:\n got %+v\nwant %+v\nby %+v", c, got, want, *r)
						}
					}
				}
			}
		}
	}
	for _, r := range all {
		if !r.used {
			t.Errorf("no combination matches %+v", *r)
		}
	}
}

// Simple does not take defaults that are invalid.
func TestInvalidDefaults(t *testing.T) {
	for _, defaults := range []policy.Defaults{{Reconcile: "mange"}, {Reclaim: "keep"}, {Allow: policy.VerbCreate}} {
		funcs := newRecorder().funcs()
		funcs.Policy = defaults
		if err := external.Simple("User", funcs).Err; err == nil || !strings.Contains(err.Error(), "default for policy.ctrlkit.dev/") {
			t.Errorf("%+v: got %v", defaults, err)
		}
	}
}

// A function that is missing is a mistake in how the step was made.
func TestMissingFuncs(t *testing.T) {
	for says, remove := range map[string]func(f *external.Funcs[*User]){
		"no CreateOrUpdate":         func(f *external.Funcs[*User]) { f.CreateOrUpdate = nil },
		"no Delete":                 func(f *external.Funcs[*User]) { f.Delete = nil },
		"has Claimed, and no Claim": func(f *external.Funcs[*User]) { f.Claim = nil },
		"":                          func(f *external.Funcs[*User]) { f.Claimed, f.UpdateStatus = nil, nil },
	} {
		funcs := newRecorder().funcs()
		remove(&funcs)
		if err := external.Simple("User", funcs).Err; (err != nil) != (says != "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v", says, err)
		}
	}
}
