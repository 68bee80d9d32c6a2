// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/engine/answer"
)

// create checks ClientRuleCreate.
func (k *kit[T]) create() {
	obj, by, id, ok := k.begin()
	switch {
	case !ok:
		return
	case id == "":
		k.report("Create returns no id: return the one that the system has chosen")
		return
	case by.Name != "" && id != by.Name:
		k.report("Create returns the id %q for the name %q: where the object chooses the name, it is the id; return it, or nothing", id, by.Name)
		return
	}
	if k.reconnect(obj) {
		if err := k.settle(obj, id); err != nil {
			k.report("what Create has created does not exist for a client of another reconcile: %v", err)
		}
	}
}

// createAgain checks ClientRuleCreateAgain.
func (k *kit[T]) createAgain() {
	obj, by, id, ok := k.make()
	if !ok || !k.reconnect(obj) {
		return
	}
	again, err := k.tryCreate(obj, by)
	switch {
	case err != nil:
		k.report("Create with the same %s returns the error %v: after a lost answer it is called again; return the id of what exists", kindOf(by), err)
	case again != id:
		k.report("Create with the same %s returns the id %q, and the first time %q: return the id of what exists", kindOf(by), again, id)
	}
}

// kindOf names what a resource is found by.
func kindOf(by external.Creation) string {
	switch {
	case by.Name != "":
		return "name"
	case by.Token != "":
		return "token"
	case by.Tag != "":
		return "tag"
	}
	return "object"
}

// names checks ClientRuleNames.
func (k *kit[T]) names() {
	rules := k.Names
	shortest := external.NameRules{Prefix: rules.Prefix, MaxLength: len(rules.Prefix) + 16}
	for _, tt := range []struct {
		what  string
		rules external.NameRules
		more  int
	}{
		{"the shortest name", shortest, 0},
		{"the longest name", rules, rules.MaxLength},
		{"a name that is too long", rules, rules.MaxLength + 1},
	} {
		obj := k.New()
		name, err := tt.rules.NameOf(obj)
		if err != nil {
			k.report("ClientConfig.Names: %v", err)
			return
		}
		name += strings.Repeat("x", max(tt.more-len(name), 0))
		if !k.reconnect(obj) {
			return
		}
		switch _, err := k.tryCreate(obj, external.Creation{Name: name}); {
		case len(name) <= rules.MaxLength && err != nil:
			k.report("%s of ClientConfig.Names, %q with %d bytes, is not accepted: lower MaxLength, or change Prefix: %v", tt.what, name, len(name), err)
		case len(name) > rules.MaxLength && err == nil:
			k.report("a name of %d bytes is accepted, and MaxLength of ClientConfig.Names is %d: raise it, or have Create refuse the name", len(name), rules.MaxLength)
		case err != nil && !answer.IsRefused(err):
			k.report("the error of Create for a name that is too long is not marked by external.Refused: %v", err)
		}
	}
}

// refuse checks ClientRuleRefused.
func (k *kit[T]) refuse() {
	obj := k.New()
	by, err := k.Identity.Creation(obj)
	if err != nil || !k.reconnect(obj) {
		return // other rules report it
	}
	k.Refuse(obj)
	before := k.snapshot()
	_, err = k.tryCreate(obj, by)
	switch {
	case err == nil:
		k.report("Create of what ClientConfig.Refuse makes invalid returns no error")
		return
	case !answer.IsRefused(err):
		k.report("Create of what ClientConfig.Refuse makes invalid returns an error that is not marked: "+
			"return external.Refused(err) where the system has answered that it has created nothing: %v", err)
	}
	if diff := cmp.Diff(before, k.snapshot()); diff != "" {
		k.report("Create of what ClientConfig.Refuse makes invalid has changed the system (-before +after):\n%s", diff)
	}
	if id := k.foundFor(obj, by); id != "" {
		k.report("Create of what ClientConfig.Refuse makes invalid has created the resource %q", id)
	}
}

// foundFor returns the id of the resource of a creation, if one exists and can be found.
func (k *kit[T]) foundFor(obj T, by external.Creation) string {
	id := by.Name
	if finder, ok := k.client.(external.Finder[T]); ok && by.Tag != "" {
		id, _ = finder.Find(k.ctx, obj, by.Tag) // the rule about Find reports an error
	}
	if id == "" {
		return ""
	}
	seen, err := k.observe(obj, id)
	if err != nil || seen.State == external.Absent {
		return ""
	}
	k.made = append(k.made, resource[T]{obj, id})
	return id
}

// snapshot returns all that is in the system, as far as it is known. An error is reported.
func (k *kit[T]) snapshot() string {
	if k.Snapshot == nil {
		return ""
	}
	all, err := k.Snapshot(k.ctx)
	if err != nil {
		k.report("ClientConfig.Snapshot returns the error: %v", err)
	}
	return all
}

// unknown checks ClientRuleUnknown.
func (k *kit[T]) unknown() {
	obj := k.New()
	if !k.reconnect(obj) {
		return
	}
	seen, err := k.observe(obj, k.Unknown)
	switch {
	case err != nil:
		k.report("Observe of the id %q, which no resource has, returns an error: return the state Absent and no error: %v", k.Unknown, err)
	case seen.State != external.Absent && seen.State != 0:
		k.report("Observe of the id %q, which no resource has, returns the state %s: return Absent", k.Unknown, seen.State)
	}
}

// observing checks ClientRuleObserve.
func (k *kit[T]) observing() {
	obj, _, id, ok := k.make()
	if !ok || !k.reconnect(obj) {
		return
	}
	k.unchanged(obj, id)
	if k.Drift != nil {
		k.Drift(obj)
		k.unchanged(obj, id)
	}
	k.unchanged(obj, k.Unknown)
}

// unchanged reports what two calls of Observe have changed.
func (k *kit[T]) unchanged(obj T, id string) {
	before := k.snapshot()
	first, err1 := k.observe(obj, id)
	second, err2 := k.observe(obj, id)
	after := k.snapshot()
	switch {
	case before != after:
		k.report("Observe of %q, which was %s, has changed the system: leave that to Update (-before +after):\n%s", id, first.State, cmp.Diff(before, after))
	case err1 == nil && err2 == nil && !reflect.DeepEqual(first, second):
		first.Connection, second.Connection = lengths(first), lengths(second)
		k.report("two calls of Observe of %q return different observations although nothing has changed (-first +second):\n%s", id, cmp.Diff(first, second))
	}
}

// lengths returns the connection details without their values.
func lengths(seen external.Observation) map[string][]byte {
	all := make(map[string][]byte, len(seen.Connection))
	for key, value := range seen.Connection {
		all[key] = fmt.Appendf(nil, "%d bytes", len(value))
	}
	return all
}

// update checks ClientRuleUpdate.
func (k *kit[T]) update() {
	obj, _, id, ok := k.make()
	if !ok || !k.reconnect(obj) {
		return
	}
	k.Drift(obj)
	seen, err := k.await(obj, id, []external.State{external.UpToDate}, external.Drifted)
	if err != nil {
		k.report("Observe does not report the difference that ClientConfig.Drift makes: %v", err)
		return
	}
	checkPaths(seen, k.report)
	for _, time := range []string{"", " a second time"} {
		if err := k.change("Update", k.client.Update, obj, id); err != nil {
			k.report("Update%s returns the error: %v", time, err)
			return
		}
	}
	if !k.reconnect(obj) {
		return
	}
	if _, err := k.await(obj, id, []external.State{external.Drifted, external.Updating}, external.UpToDate); err != nil {
		k.report("Update does not repair the difference that ClientConfig.Drift makes: %v", err)
	}
}

// storesOwner checks ClientRuleStoresOwner.
func storesOwner[T client.Object](k *kit[T]) {
	obj, _, id, ok := k.make()
	if !ok || !k.reconnect(obj) {
		return
	}
	if seen, err := k.observe(obj, id); err == nil && seen.Owner == "" { // another one is reported by ClientRuleOwner
		k.report("after Create, Observe reports no owner, and not %q: Create has to store what external.OwnerOf returns, and Observe to report it", external.OwnerOf(obj))
		return
	}
	taker := copyOf(obj)
	taker.SetUID("ctrlkittest-taker")
	if err := k.change("Update", k.client.Update, taker, id); err != nil {
		k.report("Update by another object, which adopts the resource, returns the error: %v", err)
		return
	}
	if !k.reconnect(taker) {
		return
	}
	seen, err := k.await(taker, id, []external.State{external.Drifted, external.Updating}, external.UpToDate)
	if err == nil && (seen.Owner == "" || seen.Owner == external.OwnerOf(obj)) {
		k.report("after an Update by another object, Observe reports the owner %q, and not %q: let Update store external.OwnerOf(obj), or, if the system does not change it, leave StoresOwner out", seen.Owner, external.OwnerOf(taker))
	}
}

// checkPaths checks what an observation says of drift.
func checkPaths(seen external.Observation, report func(format string, args ...any)) {
	if len(seen.Drift) == 0 {
		report("Observe returns the state Drifted without Observation.Drift: add the paths of the spec that differ, such as \"spec.size\"")
	}
	for _, path := range seen.Drift {
		if strings.ContainsAny(path, " =\n") || path == "" {
			report("Observation.Drift has %q, which is no path: without values, such as \"spec.size\"", path)
		}
	}
}

// deletion checks ClientRuleDelete.
func (k *kit[T]) deletion() {
	obj, _, id, ok := k.make()
	if !ok || !k.reconnect(obj) {
		return
	}
	if err := k.change("Delete", k.client.Delete, obj, id); err != nil {
		k.report("Delete returns the error: %v", err)
		return
	}
	if !k.reconnect(obj) {
		return
	}
	if _, err := k.await(obj, id, []external.State{external.Deleting}, external.Absent); err != nil {
		k.report("Delete does not delete: report the state Deleting as long as it takes: %v", err)
		return
	}
	if err := k.change("Delete", k.client.Delete, obj, id); err != nil {
		k.report("Delete of what is deleted returns an error: it is called again after a crash; return none: %v", err)
	}
	if err := k.change("Delete", k.client.Delete, obj, k.Unknown); err != nil {
		k.report("Delete of the id %q, which no resource has, returns an error: return none: %v", k.Unknown, err)
	}
}

// find checks ClientRuleFind.
func (k *kit[T]) find() {
	obj, by, id, ok := k.make()
	other, _, otherID, ok2 := k.make()
	if !ok || !ok2 {
		return
	}
	finder, ok := k.client.(external.Finder[T])
	if !ok {
		k.report("%T has no method Find, which the identity by tag needs", k.client)
		return
	}
	for _, tt := range []struct {
		obj       T
		tag, want string
	}{
		{obj, by.Tag, id},
		{other, external.OwnerOf(other), otherID},
		{obj, by.Tag + "-unknown", ""},
	} {
		switch got, err := finder.Find(k.ctx, tt.obj, tt.tag); {
		case err != nil:
			k.report("Find of the tag %q returns the error: %v", tt.tag, err)
		case got != tt.want:
			k.report("Find of the tag %q returns %q, and not %q", tt.tag, got, tt.want)
		}
	}
}

// lateInitialize checks ClientRuleLateInitialize.
func (k *kit[T]) lateInitialize() {
	obj, _, id, ok := k.make()
	if !ok || !k.reconnect(obj) {
		return
	}
	late, ok := k.client.(external.LateInitializer[T])
	if !ok {
		return
	}
	if _, err := k.observe(obj, id); err != nil {
		return // other rules report it
	}
	once := copyOf(obj)
	late.LateInitialize(once)
	before, after := partsOf(obj), partsOf(once)
	if diff := cmp.Diff(before["metadata"], after["metadata"]); diff != "" {
		k.report("LateInitialize changes the metadata (-before +after):\n%s", diff)
	}
	for _, part := range slices.Sorted(maps.Keys(before)) {
		if path := overwritten(before[part], after[part], part); path != "" && part != "metadata" {
			k.report("LateInitialize changes %s, which is set: change only what is not", path)
		}
	}
	twice := copyOf(once)
	late.LateInitialize(twice)
	if diff := cmp.Diff(after, partsOf(twice)); diff != "" {
		k.report("a second call of LateInitialize changes the object again, which would be written each time (-first +second):\n%s", diff)
	}
}
