// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package externaltest

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
)

// A Rule is a requirement on a client. Its text is the name of the subtest.
type Rule string

// The rules about what a resource does.
const (
	// RuleCreate: what Create has created exists for a client of another reconcile. Create returns
	// an id, which may be empty only where the object has chosen a name, and is no other one then.
	RuleCreate Rule = "create"
	// RuleCreateAgain: Create with the same name or the same token returns the same id.
	RuleCreateAgain Rule = "create-again"
	// RuleNames: the system accepts the shortest and the longest name of Config.Names, and Create
	// refuses a longer one.
	RuleNames Rule = "names"
	// RuleRefused: an error of Create that says for certain that nothing was created is marked by
	// [external.Refused], and nothing was created.
	RuleRefused Rule = "refused"
	// RuleUnknown: Observe returns the state Absent and no error for an id that no resource has.
	RuleUnknown Rule = "unknown"
	// RuleObserve: Observe changes nothing.
	RuleObserve Rule = "observe"
	// RuleUpdate: Observe reports a difference from the spec as Drifted, with the paths of the
	// spec, and after Update as UpToDate. A second Update is no error.
	RuleUpdate Rule = "update"
	// RuleStoresOwner: with Config.StoresOwner, Observe reports what [external.OwnerOf] returns for
	// the object of the last Create or Update: an Update by another object stores that one.
	RuleStoresOwner Rule = "stores-owner"
	// RuleDelete: after Delete the resource is Absent, and Deleting until then. A second Delete is
	// no error.
	RuleDelete Rule = "delete"
	// RuleFind: Find returns the id of the resource with a tag, and none for a tag that no
	// resource has.
	RuleFind Rule = "find"
	// RuleContext: each method returns soon when its context is done, with an error that wraps
	// that of the context.
	RuleContext Rule = "context"
	// RuleLateInitialize: LateInitialize changes the spec alone, keeps what is set, and nothing is
	// left for a second call.
	RuleLateInitialize Rule = "late-initialize"
)

// The rules about each call of a method.
const (
	// RuleState: Observe returns a valid state, without an error.
	RuleState Rule = "state"
	// RuleOwner: Observation.Owner is what [external.OwnerOf] returned for the object, or empty.
	RuleOwner Rule = "owner"
	// RuleConnection: no value of Observation.Connection is empty, and no key is one that a Secret
	// can't have.
	RuleConnection Rule = "connection"
	// RuleSecret: Config.Canary is in no error and in no text of an observation. It may be in
	// Observation.Connection.
	RuleSecret Rule = "secret"
	// RuleObject: no method changes the metadata or the spec of the object.
	RuleObject Rule = "object"
)

// A Problem is a rule that is broken.
type Problem struct {
	Rule Rule
	// Text says what is wrong, and the remedy.
	Text string
}

// String returns the text, with the rule in brackets.
func (p Problem) String() string { return p.Text + " [" + string(p.Rule) + "]" }

// A check is how a rule is checked.
type check[T client.Object] struct {
	rule Rule
	// lacks says why the rule can't be checked, empty if it can.
	lacks func(c *Config[T], by external.Creation) string
	run   func(k *kit[T])
}

func checks[T client.Object]() []check[T] {
	return []check[T]{
		{RuleCreate, nil, (*kit[T]).create},
		{RuleCreateAgain, unless("the identity has neither names nor tokens", func(_ *Config[T], by external.Creation) bool {
			return by.Name != "" || by.Token != ""
		}), (*kit[T]).createAgain},
		{RuleNames, unless("Config.Names is not set", func(c *Config[T], by external.Creation) bool {
			return by.Name != "" && c.Names.MaxLength > 0
		}), (*kit[T]).names},
		{RuleRefused, unless("Config.Refuse is not set", func(c *Config[T], _ external.Creation) bool { return c.Refuse != nil }), (*kit[T]).refuse},
		{RuleUnknown, nil, (*kit[T]).unknown},
		{RuleObserve, nil, (*kit[T]).observing},
		{RuleUpdate, unless("Config.Drift is not set", func(c *Config[T], _ external.Creation) bool { return c.Drift != nil }), (*kit[T]).update},
		{RuleStoresOwner, unless("Config.StoresOwner is not set", func(c *Config[T], _ external.Creation) bool { return c.StoresOwner }), storesOwner[T]},
		{RuleDelete, nil, (*kit[T]).deletion},
		{RuleFind, unless("the identity has no tags", func(_ *Config[T], by external.Creation) bool { return by.Tag != "" }), (*kit[T]).find},
		{RuleContext, nil, (*kit[T]).context},
		{RuleLateInitialize, nil, (*kit[T]).lateInitialize},
		{RuleState, nil, watch(wrongState[T])},
		{RuleOwner, nil, watch(wrongOwner[T])},
		{RuleConnection, nil, watch(wrongConnection[T])},
		{RuleSecret, unless("Config.Canary is not set", func(c *Config[T], _ external.Creation) bool { return c.Canary != "" }), watch(wrongText[T])},
		{RuleObject, nil, watch(wrongObject[T])},
	}
}

// unless returns why a rule can't be checked, unless something is there.
func unless[T client.Object](why string, there func(c *Config[T], by external.Creation) bool) func(*Config[T], external.Creation) string {
	return func(c *Config[T], by external.Creation) string {
		if there(c, by) {
			return ""
		}
		return why
	}
}
