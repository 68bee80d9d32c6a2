// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
)

// A ClientRule is a requirement on a client. Its text is the name of the subtest.
type ClientRule string

// The rules about what a resource does.
const (
	// ClientRuleCreate: what Create has created exists for a client of another reconcile. Create
	// returns an id, which may be empty only where the object has chosen a name, and is no other
	// one then.
	ClientRuleCreate ClientRule = "create"
	// ClientRuleCreateAgain: Create with the same name or the same token returns the same id.
	ClientRuleCreateAgain ClientRule = "create-again"
	// ClientRuleNames: the system accepts the shortest and the longest name of ClientConfig.Names,
	// and Create refuses a longer one.
	ClientRuleNames ClientRule = "names"
	// ClientRuleRefused: an error of Create that says for certain that nothing was created is
	// marked by [external.Refused], and nothing was created.
	ClientRuleRefused ClientRule = "refused"
	// ClientRuleUnknown: Observe returns the state Absent and no error for an id that no resource
	// has.
	ClientRuleUnknown ClientRule = "unknown"
	// ClientRuleObserve: Observe changes nothing.
	ClientRuleObserve ClientRule = "observe"
	// ClientRuleUpdate: Observe reports a difference from the spec as Drifted, with the paths of
	// the spec, and after Update as UpToDate. A second Update is no error.
	ClientRuleUpdate ClientRule = "update"
	// ClientRuleStoresOwner: with ClientConfig.StoresOwner, Observe reports what [external.OwnerOf]
	// returns for the object of the last Create or Update: an Update by another object stores that
	// one.
	ClientRuleStoresOwner ClientRule = "stores-owner"
	// ClientRuleDelete: after Delete the resource is Absent, and Deleting until then. A second
	// Delete is no error.
	ClientRuleDelete ClientRule = "delete"
	// ClientRuleFind: Find returns the id of the resource with a tag, and none for a tag that no
	// resource has.
	ClientRuleFind ClientRule = "find"
	// ClientRuleContext: each method returns soon when its context is done, with an error that
	// wraps that of the context.
	ClientRuleContext ClientRule = "context"
	// ClientRuleLateInitialize: LateInitialize changes the spec alone, keeps what is set, and
	// nothing is left for a second call.
	ClientRuleLateInitialize ClientRule = "late-initialize"
)

// The rules about each call of a method.
const (
	// ClientRuleState: Observe returns a valid state, without an error.
	ClientRuleState ClientRule = "state"
	// ClientRuleOwner: Observation.Owner is what [external.OwnerOf] returned for the object, or
	// empty.
	ClientRuleOwner ClientRule = "owner"
	// ClientRuleConnection: no value of Observation.Connection is empty, and no key is one that a
	// Secret can't have.
	ClientRuleConnection ClientRule = "connection"
	// ClientRuleSecret: ClientConfig.Canary is in no error and in no text of an observation. It may
	// be in Observation.Connection.
	ClientRuleSecret ClientRule = "secret"
	// ClientRuleObject: no method changes the metadata or the spec of the object.
	ClientRuleObject ClientRule = "object"
)

// A ClientProblem is a rule that is broken.
type ClientProblem struct {
	Rule ClientRule
	// Text says what is wrong, and the remedy.
	Text string
}

// String returns the text, with the rule in brackets.
func (p ClientProblem) String() string { return p.Text + " [" + string(p.Rule) + "]" }

// A check is how a rule is checked.
type check[T client.Object] struct {
	rule ClientRule
	// lacks says why the rule can't be checked, empty if it can.
	lacks func(c *ClientConfig[T], by external.Creation) string
	run   func(k *kit[T])
}

func checks[T client.Object]() []check[T] {
	return []check[T]{
		{ClientRuleCreate, nil, (*kit[T]).create},
		{ClientRuleCreateAgain, unless("the identity has neither names nor tokens", func(_ *ClientConfig[T], by external.Creation) bool {
			return by.Name != "" || by.Token != ""
		}), (*kit[T]).createAgain},
		{ClientRuleNames, unless("ClientConfig.Names is not set", func(c *ClientConfig[T], by external.Creation) bool {
			return by.Name != "" && c.Names.MaxLength > 0
		}), (*kit[T]).names},
		{ClientRuleRefused, unless("ClientConfig.Refuse is not set", func(c *ClientConfig[T], _ external.Creation) bool { return c.Refuse != nil }), (*kit[T]).refuse},
		{ClientRuleUnknown, nil, (*kit[T]).unknown},
		{ClientRuleObserve, nil, (*kit[T]).observing},
		{ClientRuleUpdate, unless("ClientConfig.Drift is not set", func(c *ClientConfig[T], _ external.Creation) bool { return c.Drift != nil }), (*kit[T]).update},
		{ClientRuleStoresOwner, unless("ClientConfig.StoresOwner is not set", func(c *ClientConfig[T], _ external.Creation) bool { return c.StoresOwner }), storesOwner[T]},
		{ClientRuleDelete, nil, (*kit[T]).deletion},
		{ClientRuleFind, unless("the identity has no tags", func(_ *ClientConfig[T], by external.Creation) bool { return by.Tag != "" }), (*kit[T]).find},
		{ClientRuleContext, nil, (*kit[T]).context},
		{ClientRuleLateInitialize, nil, (*kit[T]).lateInitialize},
		{ClientRuleState, nil, watch(wrongState[T])},
		{ClientRuleOwner, nil, watch(wrongOwner[T])},
		{ClientRuleConnection, nil, watch(wrongConnection[T])},
		{ClientRuleSecret, unless("ClientConfig.Canary is not set", func(c *ClientConfig[T], _ external.Creation) bool { return c.Canary != "" }), watch(wrongText[T])},
		{ClientRuleObject, nil, watch(wrongObject[T])},
	}
}

// unless returns why a rule can't be checked, unless something is there.
func unless[T client.Object](why string, there func(c *ClientConfig[T], by external.Creation) bool) func(*ClientConfig[T], external.Creation) string {
	return func(c *ClientConfig[T], by external.Creation) string {
		if there(c, by) {
			return ""
		}
		return why
	}
}
