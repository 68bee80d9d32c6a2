// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/external"
)

func TestRunPasses(t *testing.T) {
	for _, i := range identities {
		t.Run(i.name, func(t *testing.T) {
			config, s := configOf(i, mistake{})
			ctrlkittest.CheckClient(t, config)
			if len(s.all) > 0 && i.name == "name" {
				for id, r := range s.all {
					if !r.deleting {
						t.Errorf("the resource %q is left", id)
					}
				}
			}
		})
	}
}

// wrong are clients that break one rule each.
var wrong = []struct {
	name     string
	rule     ctrlkittest.ClientRule
	identity string // one class, if it is not all
	mistake  mistake
	text     string // what is reported has it
}{
	{"create returns without creating", ctrlkittest.ClientRuleCreate, "", mistake{create: onFirst((*topicClient).put, func(*topicClient, context.Context, topic, external.Creation) (string, error) {
		return "topic-missing", nil
	})}, "Create"},
	{"create returns no id", ctrlkittest.ClientRuleCreate, "token", mistake{create: onFirst((*topicClient).put, func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		_, err := c.put(ctx, obj, by)
		return "", err
	})}, "returns no id"},
	{"create fails for what exists", ctrlkittest.ClientRuleCreateAgain, "name", mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		if ctx.Err() == nil && c.by(func(r *resource) bool { return r.id == by.Name }) != nil {
			return "", errors.New("409 exists")
		}
		return c.put(ctx, obj, by)
	}}, "409 exists"},
	{"create ignores the token", ctrlkittest.ClientRuleCreateAgain, "token", mistake{create: func(c *topicClient, ctx context.Context, obj topic, _ external.Creation) (string, error) {
		return c.put(ctx, obj, external.Creation{})
	}}, "the first time"},
	{"a name that is too long is cut", ctrlkittest.ClientRuleNames, "name", mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		by.Name = by.Name[:min(len(by.Name), longest)]
		return c.put(ctx, obj, by)
	}}, "accepted"},
	{"names are shorter than the rules say", ctrlkittest.ClientRuleNames, "name", mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		if len(by.Name) > longest-1 {
			return "", external.Refused(errInvalid)
		}
		return c.put(ctx, obj, by)
	}}, "not accepted"},
	{"a refusal is not marked", ctrlkittest.ClientRuleRefused, "", mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		if obj.Data["size"] == "invalid" {
			return "", errInvalid
		}
		return c.put(ctx, obj, by)
	}}, "external.Refused"},
	{"a refusal leaves something", ctrlkittest.ClientRuleRefused, "", mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		if obj.Data["size"] == "invalid" {
			if by.Name == "" {
				by.Name = "half"
			}
			c.all[by.Name] = &resource{id: by.Name, tag: by.Tag}
		}
		return c.put(ctx, obj, by)
	}}, "ClientConfig.Refuse"},
	{"observe fails for what does not exist", ctrlkittest.ClientRuleUnknown, "", mistake{observe: func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error) {
		if id == "ctrlkittest-unknown" {
			return external.Observation{State: external.Absent}, errors.New("404 not found")
		}
		return c.look(ctx, obj, id)
	}}, "404 not found"},
	{"observe repairs", ctrlkittest.ClientRuleObserve, "", mistake{observe: func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error) {
		seen, err := c.look(ctx, obj, id)
		if seen.State == external.Drifted {
			c.all[id].wanted = obj.Data["size"]
		}
		return seen, err
	}}, "changed the system"},
	{"observe says something else each time", ctrlkittest.ClientRuleObserve, "", mistake{observe: func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error) {
		seen, err := c.look(ctx, obj, id)
		c.n++
		seen.Message = fmt.Sprintf("request %d", c.n)
		return seen, err
	}}, "different observations"},
	{"update does nothing", ctrlkittest.ClientRuleUpdate, "", mistake{update: func(c *topicClient, ctx context.Context, obj topic, id string) error {
		if ctx.Err() == nil {
			c.all[id].owner = external.OwnerOf(obj)
		}
		return ctx.Err()
	}}, "does not repair"},
	{"update fails when nothing differs", ctrlkittest.ClientRuleUpdate, "", mistake{update: func(c *topicClient, ctx context.Context, obj topic, id string) error {
		if ctx.Err() == nil && c.all[id].wanted == obj.Data["size"] {
			return errors.New("nothing to change")
		}
		return c.patch(ctx, obj, id)
	}}, "a second time"},
	{"drift without paths", ctrlkittest.ClientRuleUpdate, "", mistake{observe: func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error) {
		seen, err := c.look(ctx, obj, id)
		seen.Drift = nil
		return seen, err
	}}, "without Observation.Drift"},
	{"delete does nothing", ctrlkittest.ClientRuleDelete, "", mistake{delete: func(_ *topicClient, ctx context.Context, _ topic, _ string) error { return ctx.Err() }}, "does not delete"},
	{"delete fails for what does not exist", ctrlkittest.ClientRuleDelete, "", mistake{delete: func(c *topicClient, ctx context.Context, _ topic, id string) error {
		if ctx.Err() == nil && c.all[id] == nil {
			return errors.New("404 not found")
		}
		return c.remove(ctx, id)
	}}, "what is deleted"},
	{"find returns any", ctrlkittest.ClientRuleFind, "tag", mistake{find: func(c *topicClient, ctx context.Context, _ topic, _ string) (string, error) {
		if r := c.by(func(*resource) bool { return true }); ctx.Err() == nil && r != nil && !r.deleting {
			return r.id, nil
		}
		return "", ctx.Err()
	}}, "Find of the tag"},
	{"observe ignores its context", ctrlkittest.ClientRuleContext, "", mistake{observe: func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error) {
		return c.look(context.WithoutCancel(ctx), obj, id)
	}}, "Observe with a context that is done returns <nil>"},
	{"update hides why it ended", ctrlkittest.ClientRuleContext, "", mistake{update: func(c *topicClient, ctx context.Context, obj topic, id string) error {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return c.patch(ctx, obj, id)
	}}, "interrupted"},
	{"delete sleeps", ctrlkittest.ClientRuleContext, "", mistake{delete: func(c *topicClient, ctx context.Context, _ topic, id string) error {
		if ctx.Err() != nil {
			time.Sleep(time.Minute)
		}
		return c.remove(ctx, id)
	}}, "has not returned"},
	{"late initialization overwrites", ctrlkittest.ClientRuleLateInitialize, "", mistake{late: func(_ *topicClient, obj topic) { obj.Data["size"] = "medium" }}, "data.size, which is set"},
	{"late initialization never ends", ctrlkittest.ClientRuleLateInitialize, "", mistake{late: func(_ *topicClient, obj topic) { obj.Data[fmt.Sprint(len(obj.Data))] = "new" }}, "second call"},
	{"late initialization labels", ctrlkittest.ClientRuleLateInitialize, "", mistake{late: func(_ *topicClient, obj topic) { obj.Labels = map[string]string{"a": "b"} }}, "metadata"},
	{"no state of what is created", ctrlkittest.ClientRuleState, "", mistake{observe: after(func(seen *external.Observation) {
		if seen.State == external.Creating {
			seen.State = 0
		}
	})}, "the state 0"},
	{"the owner is a constant", ctrlkittest.ClientRuleOwner, "", mistake{observe: after(func(seen *external.Observation) { seen.Owner = "us" })}, "the owner"},
	{"no owner is reported", ctrlkittest.ClientRuleStoresOwner, "", mistake{observe: after(func(seen *external.Observation) { seen.Owner = "" })}, "after Create"},
	{"update keeps the first owner", ctrlkittest.ClientRuleStoresOwner, "", mistake{update: func(c *topicClient, ctx context.Context, obj topic, id string) error {
		first := c.all[id].owner
		err := c.patch(ctx, obj, id)
		c.all[id].owner = first
		return err
	}}, "leave StoresOwner out"},
	{"an empty password", ctrlkittest.ClientRuleConnection, "", mistake{observe: after(func(seen *external.Observation) {
		seen.Connection = map[string][]byte{"password": nil}
	})}, "without a value"},
	{"a key that no Secret has", ctrlkittest.ClientRuleConnection, "", mistake{observe: after(func(seen *external.Observation) {
		seen.Connection = map[string][]byte{"pass word": []byte("x")}
	})}, "no key of a Secret"},
	{"a message with the password", ctrlkittest.ClientRuleSecret, "", mistake{observe: after(func(seen *external.Observation) {
		seen.Message = "connect with " + canary
	})}, "whose Message"},
	{"an error with the password", ctrlkittest.ClientRuleSecret, "", mistake{create: func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		if obj.Data["size"] == "invalid" {
			return "", external.Refused(errors.New("POST https://us:" + canary + "@system"))
		}
		return c.put(ctx, obj, by)
	}}, "Create returns an error"},
	{"update writes to the spec", ctrlkittest.ClientRuleObject, "", mistake{update: func(c *topicClient, ctx context.Context, obj topic, id string) error {
		err := c.patch(ctx, obj, id)
		obj.Data["updated"] = "yes"
		return err
	}}, "Update changes the object"},
	{"observe writes an annotation", ctrlkittest.ClientRuleObject, "", mistake{observe: func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error) {
		obj.Annotations = map[string]string{"id": id}
		return c.look(ctx, obj, id)
	}}, "Observe changes the object"},
}

// onFirst replaces the first creation of a system, which is that of the first rule.
func onFirst(
	right, first func(*topicClient, context.Context, topic, external.Creation) (string, error),
) func(*topicClient, context.Context, topic, external.Creation) (string, error) {
	return func(c *topicClient, ctx context.Context, obj topic, by external.Creation) (string, error) {
		if obj.Name == "topic-2" { // the first is that of the identity
			return first(c, ctx, obj, by)
		}
		return right(c, ctx, obj, by)
	}
}

// after changes what a right client observes.
func after(change func(seen *external.Observation)) func(*topicClient, context.Context, topic, string) (external.Observation, error) {
	return func(c *topicClient, ctx context.Context, obj topic, id string) (external.Observation, error) {
		seen, err := c.look(ctx, obj, id)
		if err == nil && seen.State != external.Absent {
			change(&seen)
		}
		return seen, err
	}
}

func TestEachRuleIsBroken(t *testing.T) {
	broken := map[ctrlkittest.ClientRule]bool{}
	for _, tt := range wrong {
		broken[tt.rule] = true
		for _, i := range identities {
			if tt.identity != "" && tt.identity != i.name {
				continue
			}
			t.Run(tt.name+" by "+i.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config, _ := configOf(i, tt.mistake)
					config.Interval = time.Second
					check(t, config, tt.rule, tt.text)
					time.Sleep(2 * time.Minute) // of the bubble: then each method has returned
				})
			})
		}
	}
	for _, rule := range []ctrlkittest.ClientRule{
		ctrlkittest.ClientRuleCreate, ctrlkittest.ClientRuleCreateAgain, ctrlkittest.ClientRuleNames, ctrlkittest.ClientRuleRefused, ctrlkittest.ClientRuleUnknown,
		ctrlkittest.ClientRuleObserve, ctrlkittest.ClientRuleUpdate, ctrlkittest.ClientRuleDelete, ctrlkittest.ClientRuleFind, ctrlkittest.ClientRuleContext,
		ctrlkittest.ClientRuleLateInitialize, ctrlkittest.ClientRuleState, ctrlkittest.ClientRuleOwner, ctrlkittest.ClientRuleConnection,
		ctrlkittest.ClientRuleSecret, ctrlkittest.ClientRuleObject,
	} {
		if !broken[rule] {
			t.Errorf("no client breaks the rule %q", rule)
		}
	}
}

// check checks that one rule is broken, and no other one.
func check(t *testing.T, config ctrlkittest.ClientConfig[topic], rule ctrlkittest.ClientRule, text string) {
	t.Helper()
	found, err := ctrlkittest.ClientProblems(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("nothing is reported")
	}
	for _, p := range found {
		if p.Rule != rule {
			t.Errorf("another rule is broken, too: %s", p)
		}
		if strings.Contains(p.Text, canary) {
			t.Errorf("the report has the secret: %s", p)
		}
	}
	if !slices.ContainsFunc(found, func(p ctrlkittest.ClientProblem) bool { return strings.Contains(p.Text, text) }) {
		t.Errorf("reported without %q: %v", text, found)
	}
}

func TestProblemsOfConfig(t *testing.T) {
	config, _ := configOf(identities[0], mistake{})
	for name, change := range map[string]func(*ctrlkittest.ClientConfig[topic]){
		"no identity": func(c *ctrlkittest.ClientConfig[topic]) { c.Identity = external.Identity[topic]{} },
		"no connect":  func(c *ctrlkittest.ClientConfig[topic]) { c.Connect = nil },
		"no new":      func(c *ctrlkittest.ClientConfig[topic]) { c.New = nil },
		"no length":   func(c *ctrlkittest.ClientConfig[topic]) { c.Names.MaxLength = 0 },
	} {
		wrong := config
		change(&wrong)
		if _, err := ctrlkittest.ClientProblems(t.Context(), wrong); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestExceptedRuleIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, _ := configOf(identities[0], mistake{update: func(*topicClient, context.Context, topic, string) error { return errors.New("immutable") }})
		config.Interval, config.StoresOwner = time.Second, false
		config.Except = map[ctrlkittest.ClientRule]string{
			ctrlkittest.ClientRuleUpdate:  "topics are immutable",
			ctrlkittest.ClientRuleContext: "topics are immutable",
		}
		found, err := ctrlkittest.ClientProblems(t.Context(), config)
		if diff := cmp.Diff([]ctrlkittest.ClientProblem(nil), found); diff != "" || err != nil {
			t.Errorf("(-want +got):\n%s%v", diff, err)
		}
	})
}

func TestClientsAreClosed(t *testing.T) {
	config, _ := configOf(identities[0], mistake{})
	connect, open, closed := config.Connect, 0, 0
	config.Connect = func(ctx context.Context, obj topic) (external.Client[topic], error) {
		c, err := connect(ctx, obj)
		open++
		c.(*topicClient).closed = &closed
		return c, err
	}
	if _, err := ctrlkittest.ClientProblems(t.Context(), config); err != nil || open != closed || open == 0 {
		t.Errorf("%d clients, %d closed, error %v", open, closed, err)
	}
}
