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
		{RuleCreateAgain, lacksIdentity[T], (*kit[T]).createAgain},
		{RuleNames, lacksNames[T], (*kit[T]).names},
		{RuleRefused, lacksRefuse[T], (*kit[T]).refuse},
		{RuleUnknown, nil, (*kit[T]).unknown},
		{RuleObserve, nil, (*kit[T]).observing},
		{RuleUpdate, lacksDrift[T], (*kit[T]).update},
		{RuleDelete, nil, (*kit[T]).deletion},
		{RuleFind, lacksTag[T], (*kit[T]).find},
		{RuleContext, nil, (*kit[T]).context},
		{RuleLateInitialize, nil, (*kit[T]).lateInitialize},
		{RuleState, nil, watch(wrongState[T])},
		{RuleOwner, nil, watch(wrongOwner[T])},
		{RuleConnection, nil, watch(wrongConnection[T])},
		{RuleSecret, lacksCanary[T], watch(wrongText[T])},
		{RuleObject, nil, watch(wrongObject[T])},
	}
}

func lacksIdentity[T client.Object](_ *Config[T], by external.Creation) string {
	if by.Name == "" && by.Token == "" {
		return "the identity has neither names nor tokens"
	}
	return ""
}

func lacksNames[T client.Object](c *Config[T], by external.Creation) string {
	if by.Name == "" || c.Names.MaxLength == 0 {
		return "Config.Names is not set"
	}
	return ""
}

func lacksRefuse[T client.Object](c *Config[T], _ external.Creation) string {
	if c.Refuse == nil {
		return "Config.Refuse is not set"
	}
	return ""
}

func lacksDrift[T client.Object](c *Config[T], _ external.Creation) string {
	if c.Drift == nil {
		return "Config.Drift is not set"
	}
	return ""
}

func lacksTag[T client.Object](_ *Config[T], by external.Creation) string {
	if by.Tag == "" {
		return "the identity has no tags"
	}
	return ""
}

func lacksCanary[T client.Object](c *Config[T], _ external.Creation) string {
	if c.Canary == "" {
		return "Config.Canary is not set"
	}
	return ""
}
