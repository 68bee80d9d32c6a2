// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/rings"
	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/policy"
)

// rules are what is done, by what was found for the three parts of the policy. The first row that
// matches holds. They are written down from the guide, docs/external.md, and share nothing with
// the code.
//
//   - The column alive is for an object that is not being deleted: make is Claim and
//     CreateOrUpdate, claim is Claim and UpdateStatus, look is UpdateStatus. The next one is the
//     same for a reconciler that checks verbs itself.
//   - The column managed is the reason of the condition.
//   - The column deleted is for an object that is being deleted.
const rules = `
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

// absent stands for no annotation, and no default.
const absent = "absent"

// What the columns of the table are made of. The last of each is bad.
var (
	reconciles = []string{absent, "manage", "skip", "detach-on-delete", "mange"}
	allows     = []string{absent, "*", "observe", "observe,create", "observe,update", "observe,create,update", "observe,delete", "create"}
)

// A rule is a row.
type rule struct {
	reconcile, reclaim, allow, alive, checking, managed, deleted string
	used                                                         bool
}

func parseRules() (all []*rule) {
	for _, line := range strings.Split(strings.TrimSpace(rules), "\n")[1:] {
		f := strings.Fields(line)
		all = append(all, &rule{f[0], f[1], f[2], f[3], f[4], f[5], f[6], false})
	}
	return all
}

func (r *rule) matches(reconcile, reclaim, allow string) bool {
	is := func(want, got, bad string) bool { return want == "any" || want == got || want == "bad" && got == bad }
	return is(r.reconcile, reconcile, "mange") && is(r.reclaim, reclaim, "keep") && is(r.allow, allow, "create")
}

// A said is what the object, its namespace and the operator say of one part of the policy.
type said [3]string

// nothing is said by none of them.
var nothing = said{absent, absent, absent}

// first returns what holds.
func (s said) first(without string) string {
	for _, value := range s {
		if value != absent {
			return value
		}
	}
	return without
}

// A cell is one combination of the table.
type cell struct {
	reconcile, reclaim, allow said
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

var every = flag.Int("every", 7, "try every n-th combination only; 1 is all")

// Each combination of what object, namespace and operator say, and of what the object is, has the
// calls, the finalizer and the conditions of the rules.
func TestTable(t *testing.T) {
	rings.Test(t, "takes seconds")
	all, d := parseRules(), newDesk(t)
	n := 0
	each := func(c cell) {
		if n%*every == 0 {
			d.check(all, c)
		}
		n++
	}
	for _, object := range reconciles {
		for _, namespace := range reconciles {
			for _, operator := range reconciles {
				for _, state := range states {
					each(cell{said{object, namespace, operator}, nothing, nothing, "full", state})
				}
			}
		}
	}
	reclaims := []said{
		{absent, absent, absent}, {"delete", absent, absent}, {"retain", absent, absent}, {"keep", absent, absent},
		{absent, "retain", absent}, {"delete", "retain", absent}, {absent, "keep", "retain"}, {absent, absent, "retain"}, {absent, "delete", "retain"},
	}
	for _, reconcile := range reconciles[1:] {
		for _, reclaim := range reclaims {
			for _, allow := range allows {
				for _, reconciler := range []string{"full", "plain", "checking"} {
					for _, state := range states {
						each(cell{said{reconcile, absent, absent}, reclaim, said{allow, absent, absent}, reconciler, state})
					}
				}
			}
		}
	}
	for _, allow := range allows {
		for _, namespace := range allows {
			each(cell{nothing, nothing, said{absent, allow, namespace}, "full", "new"})
		}
	}
	if want := 125*5 + 4*9*8*3*5 + 8*8; n != want {
		t.Errorf("%d combinations, want %d", n, want)
	}
	for _, r := range all {
		if !r.used {
			t.Errorf("no combination matches %+v", *r)
		}
	}
}

// check compares a cell with the first rule that matches.
func (d *desk) check(all []*rule, c cell) {
	d.t.Helper()
	defaults, ok := defaultsOf(c)
	if !ok {
		if problem := refusal(defaults); !strings.Contains(problem, `default for policy.ctrlkit.dev/`) {
			d.t.Fatalf("%+v: New panics with %q", c, problem)
		}
		return
	}
	at := slices.IndexFunc(all, func(r *rule) bool {
		return r.matches(c.reconcile.first("manage"), c.reclaim.first("delete"), c.allow.first("*"))
	})
	all[at].used = true
	if got, want := d.run(c, defaults), all[at].want(c); got != want {
		d.t.Fatalf("%+v:\n got %+v\nwant %+v\nby %+v", c, got, want, *all[at])
	}
}

// defaultsOf returns what the operator says. It is false if that can't be.
func defaultsOf(c cell) (defaults policy.Defaults, ok bool) {
	valid := true
	for i, value := range []string{c.reconcile[2], c.reclaim[2], c.allow[2]} {
		if value == absent {
			continue
		}
		switch i {
		case 0:
			defaults.Reconcile = policy.Reconcile(value)
			valid = valid && value != "mange"
		case 1:
			defaults.Reclaim = policy.Reclaim(value)
		case 2:
			for _, word := range strings.Split(value, ",") {
				defaults.Allow |= map[string]policy.Verbs{
					"*": policy.AllVerbs, "observe": policy.VerbObserve, "create": policy.VerbCreate, "update": policy.VerbUpdate, "delete": policy.VerbDelete,
				}[word]
			}
			valid = valid && value != "create"
		}
	}
	return defaults, valid
}

// refusal returns why New does not take these defaults.
func refusal(defaults policy.Defaults) (problem string) {
	defer func() { problem = fmt.Sprint(recover()) }()
	lifecycle.New("User", newFull(), lifecycle.Options{Policy: defaults})
	return ""
}
