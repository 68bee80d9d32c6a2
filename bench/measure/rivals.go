// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A field is the operators that do the same.
type field struct {
	reference string // the operator that the others are compared with, unless the command line names another
	all       []rival
}

// A rival is an operator in one setting.
type rival struct {
	name     string
	operator string // of the program
	dir      string // of the source of the program, a module of its own; empty for the program operator
	policy   bool   // its namespaces have the admission policy
	creates  bool   // it creates and does not keep: it is no operator
	handlers bool   // its heap with many handlers of one kind is measured, too
	optional bool   // it is measured only if it is named
	setting  string
}

// outsideRivals are the operators of external resources. Those of others are not in the
// repository: see -rival.
var outsideRivals = field{reference: "external", all: []rival{
	{name: "external", operator: "external", setting: `package external as "ctrlkit init --children external" writes it, with names that the operator chooses ` +
		"and a connection Secret; the system is at a port of this machine."},
}}

// rivals are the operators of three children.
var rivals = field{reference: careful, all: []rival{
	{name: "limit", operator: "limit", policy: true, creates: true, setting: "no operator, but the least that one built on controller-runtime can cost: " +
		"it knows without a look that a Widget without a status has no children, creates all three at once, writes the status, and keeps nothing. " +
		"The finalizer comes from the admission policy. TransformStripManagedFields."},
	{name: "ctrlkit", operator: "ctrlkit", setting: "the engine of package step with SkipUnchanged, APIReader and the observers of package operator; the children in apply.Children; the transform and the mapper of an operator.Operator."},
	{name: "ctrlkit-policy", operator: "ctrlkit", policy: true, setting: "ctrlkit with the admission policy of package admission, which adds the finalizer when the Widget is created."},
	{name: "handlers", operator: "handlers", handlers: true, setting: "package handlers: the steps of ctrlkit, with its observers and its cache, as one handler of a registry that asks for resyncs. " +
		"Many handlers of one kind are handlers of one registry, without observers."},
	{name: careful, operator: careful, handlers: true, setting: "controller-runtime by hand: it compares before each write, field by field where the server has defaults; " +
		"patches with optimistic lock; TransformStripManagedFields, as controller-runtime recommends for a small cache. Many handlers of one kind are a controller each, on one cache."},
	{name: "careful-concurrent", operator: "careful-concurrent", setting: "careful, with its children read and written at the same time."},
	{name: "careful-ryw", operator: "careful-ryw", setting: "careful with EnableReadYourWritesConsistency, experimental in controller-runtime v0.25."},
	{name: "apply-always", operator: "apply-always", setting: "each reconcile applies the children on the server side (apply configurations, ForceOwnership); " +
		"the status is written when it has changed; TransformStripManagedFields."},
	{name: "usual", operator: "usual", setting: "as most people write it: Update for the finalizer, CreateOrUpdate for the children, " +
		"Update of the status in each reconcile, no option set."},
	{name: "wrangler", operator: "wrangler", dir: "wrangler", handlers: true, setting: "rancher's wrangler: generic controllers, OnRemove for the finalizer, apply with WithSetID, WithOwner, " +
		"WithSetOwnerReference and WithCacheTypes for each kind, its limit of one apply a second for each set lifted (WithRateLimiting), " +
		"relatedresource.Watch for the children, the target port of the Service spelled out because its type encodes the zero. Many handlers of one kind are OnChange handlers of one shared controller."},
	{name: "careful-unstripped", operator: "careful-unstripped", optional: true, setting: "careful with managed fields in its cache."},
}}

// careful is the name of the operator that is written by hand to save requests.
const careful = "careful"

// named returns the rivals with the given names, separated by commas, in the order of the table. No
// names select all that are not optional.
func (f field) named(names string) ([]rival, error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(f.all), func(r rival) bool { return r.optional }), nil
	}
	wanted := make(map[string]bool)
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if !slices.ContainsFunc(f.all, func(r rival) bool { return r.name == name }) {
			return nil, fmt.Errorf("there is no operator %q: there are %s", name, namesOf(f.all))
		}
		wanted[name] = true
	}
	return slices.DeleteFunc(slices.Clone(f.all), func(r rival) bool { return !wanted[r.name] }), nil
}

// foreign returns the rival whose program's source is in a directory outside of the repository.
func (f field) foreign(dir string) (rival, error) {
	name := filepath.Base(dir)
	if _, err := f.named(name); err == nil || name == "operator" {
		return rival{}, fmt.Errorf("-rival %s has the name of another operator: give the directory another one", dir)
	}
	return rival{name: name, operator: name, dir: dir, setting: "the program of the directory " + name + ", which is not part of the repository."}, nil
}

func namesOf(all []rival) string {
	var names []string
	for _, r := range all {
		names = append(names, r.name)
	}
	return strings.Join(names, ",")
}
