// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// observed are the conditions by what is observed of a silo that exists, in the order Available,
// Creating, Updating, Deleting, Drifted, Failed, Ready: the status, with the reason where it is not
// healthy.
var observed = []struct {
	name string
	seen external.Observation
	want string
}{
	{"up to date", external.Observation{State: external.UpToDate}, "True | False | False | False | False | False | True"},
	{
		"not usable", external.Observation{State: external.UpToDate, Unavailable: "no endpoint"},
		"False Unavailable: no endpoint | False | False | False | False | False | False Unavailable",
	},
	{
		"drifted, and may not be updated", external.Observation{State: external.Drifted, Drift: []string{"spec.size", "spec.region"}},
		"True | False | False | False | True Drifted: spec.size, spec.region | False | True",
	},
	{
		"creating", external.Observation{State: external.Creating, Message: "40 %"},
		"False InProgress | True InProgress: 40 % | False | False | False | False | False InProgress",
	},
	{
		"updating", external.Observation{State: external.Updating, Message: "40 %"},
		"True | False | True InProgress: 40 % | False | False | False | False Waiting",
	},
	{
		"deleting, by another client", external.Observation{State: external.Deleting},
		"False InProgress | False | False | True InProgress | False | False | False InProgress",
	},
	{
		"broken", external.Observation{State: external.Broken, Message: "disk full"},
		"False Broken: disk full | False | False | False | False | True Broken: disk full | False Broken",
	},
	{
		"broken for good", external.Observation{State: external.Broken, Message: "no such plan", Final: true},
		"False Broken: no such plan | False | False | False | False | True Broken: no such plan | False Broken",
	},
	{
		"broken, and the system does not say why", external.Observation{State: external.Broken},
		"False Broken: the system does not say why | False | False | False | False | True Broken: the system does not say why | False Broken",
	},
}

// line returns the conditions as observed has them.
func (d *siloDesk) line() string {
	d.t.Helper()
	all := d.conditions()
	var parts []string
	for _, kind := range []string{"Available", "Creating", "Updating", "Deleting", "Drifted", "Failed", "Ready"} {
		healthy := "False"
		if kind == "Available" || kind == "Ready" {
			healthy = "True"
		}
		text := all[kind]
		switch status, rest, _ := strings.Cut(text, " "); {
		case status == healthy:
			text = healthy
		case kind == "Ready" || strings.HasPrefix(rest, "InProgress: the system"):
			text, _, _ = strings.Cut(text, ":")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " | ")
}

func TestConditionsByState(t *testing.T) {
	rings.Test(t, "takes seconds")
	for _, tt := range observed {
		onDesk(t, tt.name, byName(), func(t *testing.T, d *siloDesk) {
			d.settle()
			d.annotate("policy.ctrlkit.dev/allow", "observe,create,delete")
			d.store.seen = func(o *external.Observation) {
				owner := o.Owner
				*o = tt.seen
				o.Owner = owner
			}
			_, _ = d.reconcile()
			if diff := cmp.Diff(tt.want, d.line()); diff != "" {
				t.Error(diff)
			}
			ctrlkittest.CheckConditions(t, d.get())
			if stalled := strings.HasPrefix(d.conditions()["Stalled"], "True"); stalled != tt.seen.Final {
				t.Errorf("it is Stalled: %t", stalled)
			}
			version := d.get().ResourceVersion
			if _, _ = d.reconcile(); d.get().ResourceVersion != version {
				t.Error("the same observation is written again")
			}
			d.store.seen = nil
			_, _ = d.reconcile()
			if diff := cmp.Diff(observed[0].want, d.line()); diff != "" {
				t.Errorf("afterwards:\n%s", diff)
			}
		})
	}
}

// What the seed says: an error is beside the operation that it belongs to, and a deletion ends all
// others.
func TestConditionsOfFailedCalls(t *testing.T) {
	for _, tt := range []struct{ method, condition string }{
		{"connect", ""}, {"observe", ""}, {"create", "Creating"}, {"update", "Updating"}, {"delete", "Deleting"},
	} {
		onDesk(t, tt.method, byName(), func(t *testing.T, d *siloDesk) {
			if tt.method != "create" {
				d.settle()
			}
			if tt.method == "update" {
				d.change(func(obj *Silo) { obj.Spec.Size = "large" })
			}
			if tt.method == "delete" {
				d.delete()
			}
			d.store.fail = failing(tt.method, errors.New("connection refused"))
			d.fails()
			d.expect("Failed", "True TemporaryError: ")
			if tt.condition != "" {
				d.expect(tt.condition, "True InProgress: the call has failed, and is repeated: see Failed")
			}
			if got := d.conditions()["Failed"]; !strings.HasSuffix(got, ": connection refused") {
				t.Errorf("Failed is %q", got)
			}
			ctrlkittest.CheckConditions(t, d.get())
			time.Sleep(time.Hour)
			d.store.fail = nil
			if d.settle(); tt.method != "delete" {
				d.expect("Failed", "False")
				d.expect("Ready", "True")
			}
		})
	}
}

func TestInvalidStateIsABug(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.store.seen = func(o *external.Observation) { *o = external.Observation{} }
		if _, err := d.reconcile(); err == nil || !strings.Contains(err.Error(), "a bug in the operator") {
			t.Errorf("error %v", err)
		}
		if len(d.store.all) > 0 {
			t.Error("it is created")
		}
	})
}
